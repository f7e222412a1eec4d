#!/usr/bin/env python3
"""Builds the standard nets that the tests and the benchmark use, with seeded weights.

    make_models.py OUT_DIR [NAME...]

The nets have the published layer lists; only the weights are random, scaled so that activations stay near one. The
batch is the symbolic dim `N` everywhere. Needs Debian's python3-onnx and python3-numpy.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Graph:
    """Collects nodes and weights; each method adds one layer and answers the name of its output."""

    def __init__(self, name, seed):
        self.name, self.random = name, np.random.RandomState(seed)
        self.nodes, self.weights = [], []

    def weight(self, array, dtype=np.float32):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype=dtype), name))
        return name

    def op(self, kind, *inputs, outputs=1, **attributes):
        index = len(self.nodes)
        names = [f"{kind.lower()}_{index}" if outputs == 1 else f"{kind.lower()}_{index}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}_{index}", **attributes))
        return names[0] if outputs == 1 else names

    def normal(self, shape, deviation):
        return self.weight(self.random.standard_normal(shape) * deviation)

    def conv(self, x, cin, cout, kernel, stride=1, pad=0, groups=1, bias=False):
        fan_in = cin // groups * kernel * kernel
        inputs = [x, self.normal((cout, cin // groups, kernel, kernel), np.sqrt(2 / fan_in))]
        if bias:
            inputs.append(self.normal((cout,), 0.1))
        return self.op("Conv", *inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups)

    def batch_norm(self, x, channels, scale=1.0):
        r = self.random
        return self.op("BatchNormalization", x, self.weight(r.uniform(0.8, 1.2, channels) * scale),
                       self.normal((channels,), 0.1), self.normal((channels,), 0.1),
                       self.weight(r.uniform(0.8, 1.2, channels)), epsilon=1e-5)

    def linear(self, x, features, units):
        """A 2-D fully connected layer as exporters write it: Gemm with the weight transposed."""
        return self.op("Gemm", x, self.normal((units, features), np.sqrt(1 / features)), self.normal((units,), 0.1),
                       transB=1)

    def save(self, path, input_shape, output, output_shape):
        graph = helper.make_graph(
            self.nodes + [helper.make_node("Identity", [output], ["output"], name="output")], self.name,
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, input_shape)],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, output_shape)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="vmpack-tests")
        model.ir_version = 8
        onnx.checker.check_model(model)
        onnx.save(model, str(path))


def mlp(path):
    g = Graph("mlp", 1)
    x = g.op("Relu", g.linear("input", 784, 512))
    x = g.op("Relu", g.linear(x, 512, 256))
    g.save(path, ["N", 784], g.linear(x, 256, 10), ["N", 10])


def resnet18(path):
    g = Graph("resnet18", 2)
    x = g.op("Relu", g.batch_norm(g.conv("input", 3, 64, 7, stride=2, pad=3), 64))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    cin = 64
    for cout in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and cout != 64 else 1
            shortcut = x if stride == 1 else g.batch_norm(g.conv(x, cin, cout, 1, stride=2), cout, 0.7)
            y = g.op("Relu", g.batch_norm(g.conv(x, cin, cout, 3, stride=stride, pad=1), cout))
            y = g.batch_norm(g.conv(y, cout, cout, 3, pad=1), cout, 0.5)
            x, cin = g.op("Relu", g.op("Add", y, shortcut)), cout
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.save(path, ["N", 3, 224, 224], g.linear(x, 512, 1000), ["N", 1000])


def mobilenet_v2(path):
    g = Graph("mobilenet_v2", 3)

    def relu6(x):
        return g.op("Clip", x, g.weight(0.0), g.weight(6.0))

    x, cin = relu6(g.batch_norm(g.conv("input", 3, 32, 3, stride=2, pad=1), 32)), 32
    for expand, cout, repeat, first_stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                               (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(repeat):
            stride, hidden, y = first_stride if i == 0 else 1, cin * expand, x
            if expand != 1:
                y = relu6(g.batch_norm(g.conv(y, cin, hidden, 1), hidden))
            y = relu6(g.batch_norm(g.conv(y, hidden, hidden, 3, stride=stride, pad=1, groups=hidden), hidden))
            residual = stride == 1 and cin == cout
            y = g.batch_norm(g.conv(y, hidden, cout, 1), cout, 0.5 if residual else 0.7)
            x, cin = (g.op("Add", x, y) if residual else y), cout
    x = relu6(g.batch_norm(g.conv(x, 320, 1280, 1), 1280))
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.save(path, ["N", 3, 224, 224], g.linear(x, 1280, 1000), ["N", 1000])


def squeezenet(path):
    g = Graph("squeezenet1_1", 4)

    def fire(x, cin, squeeze, expand):
        s = g.op("Relu", g.conv(x, cin, squeeze, 1, bias=True))
        left = g.op("Relu", g.conv(s, squeeze, expand, 1, bias=True))
        right = g.op("Relu", g.conv(s, squeeze, expand, 3, pad=1, bias=True))
        return g.op("Concat", left, right, axis=1)

    def pool(x):
        return g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)

    x = pool(g.op("Relu", g.conv("input", 3, 64, 3, stride=2, bias=True)))
    x = pool(fire(fire(x, 64, 16, 64), 128, 16, 64))
    x = pool(fire(fire(x, 128, 32, 128), 256, 32, 128))
    x = fire(fire(fire(fire(x, 256, 48, 192), 384, 48, 192), 384, 64, 256), 512, 64, 256)
    x = g.op("GlobalAveragePool", g.op("Relu", g.conv(x, 512, 1000, 1, bias=True)))
    g.save(path, ["N", 3, 224, 224], g.op("Flatten", x, axis=1), ["N", 1000])


def transformer(path, sequence=128, width=256, heads=4, layers=2):
    g = Graph("transformer", 5)

    def dense(x, features, units):
        y = g.op("MatMul", x, g.normal((features, units), np.sqrt(1 / features)))
        return g.op("Add", y, g.normal((units,), 0.1))

    def layer_norm(x):
        scale = g.weight(g.random.uniform(0.8, 1.2, width))
        return g.op("LayerNormalization", x, scale, g.normal((width,), 0.1), axis=-1, epsilon=1e-5)

    def split_heads(x, permutation):
        y = g.op("Reshape", x, g.weight([0, sequence, heads, width // heads], np.int64))
        return g.op("Transpose", y, perm=permutation)

    def attention(x):
        q = split_heads(dense(x, width, width), [0, 2, 1, 3])
        k = split_heads(dense(x, width, width), [0, 2, 3, 1])
        v = split_heads(dense(x, width, width), [0, 2, 1, 3])
        scores = g.op("Mul", g.op("MatMul", q, k), g.weight((width // heads) ** -0.5))
        y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return dense(g.op("Reshape", y, g.weight([0, sequence, width], np.int64)), width, width)

    def gelu(x):
        erf = g.op("Erf", g.op("Div", x, g.weight(np.sqrt(2))))
        return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.weight(1.0))), g.weight(0.5))

    x = g.op("Add", "input", g.normal((1, sequence, width), 0.1))
    for _ in range(layers):
        x = layer_norm(g.op("Add", x, attention(x)))
        x = layer_norm(g.op("Add", x, dense(gelu(dense(x, width, 4 * width)), 4 * width, width)))
    g.save(path, ["N", sequence, width], x, ["N", sequence, width])


MODELS = {"mlp": mlp, "resnet18": resnet18, "mobilenet_v2": mobilenet_v2, "squeezenet1_1": squeezenet,
          "transformer": transformer}


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments[1:] or MODELS:
        if name not in MODELS:
            sys.exit(f"make_models.py: no model '{name}'; there are: {', '.join(MODELS)}")
        MODELS[name](folder / f"{name}.onnx")


if __name__ == "__main__":
    main(sys.argv[1:])
