//===- VmpkOps.td - the vmpk dialect: what upstream has no op for ---------------------------------------===//
//
// Two groups:
//  - kernel ops (gemm, pack, conv, winograd, depthwise): destination-style calls of runtime/kernels, on tensors and,
//    after bufferization, on memrefs;
//  - schedule ops (dispatch, barrier, view, weight): what the host sees of a model.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPK_OPS
#define VMPK_OPS

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Vmpk_Dialect : Dialect {
  let name = "vmpk";
  let cppNamespace = "::vmpack::dialect";
  let summary = "Kernels, dispatches and the schedule of a packaged model";
}

class Vmpk_Op<string mnemonic, list<Trait> traits = []> : Op<Vmpk_Dialect, mnemonic, traits>;

/// An op that computes its last operand (the destination) from the others and overwrites it.
class Vmpk_KernelOp<string mnemonic, list<Trait> traits = []>
    : Vmpk_Op<mnemonic, !listconcat(traits, [DestinationStyleOpInterface,
                                             DeclareOpInterfaceMethods<MemoryEffectsOpInterface>])> {
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutMutable(); }
  }];
  let hasVerifier = 1;
}

def Vmpk_GemmOp : Vmpk_KernelOp<"gemm"> {
  let summary = "out = clamp(a * b + bias): [B,] M x K times panels [B,] N/16 x K x 16";
  let description = [{
    `b` is packed (see vmpk.pack); without its own batch dim it serves every batch. `low` and `high` clamp the result.
  }];
  let arguments = (ins AnyShaped:$a, AnyShaped:$b, Optional<AnyShaped>:$bias, AnyShaped:$out, F32Attr:$low,
                   F32Attr:$high);
}

def Vmpk_PackOp : Vmpk_KernelOp<"pack"> {
  let summary = "packs [B,] K x N (or, transposed, [B,] N x K) into panels [B,] N/16 x K x 16";
  let arguments = (ins AnyShaped:$source, AnyShaped:$out, UnitAttr:$transposed);
}

def Vmpk_ConvOp : Vmpk_KernelOp<"conv"> {
  let summary = "2-D convolution of NHWC images with packed weights F/16 x (KH*KW*C) x 16, bias and clamp";
  let description = [{
    `pads` is [top, left]; what lies beyond the image, at the bottom and right too, counts as zero. The output's own
    shape says how far the window moves.
  }];
  let arguments = (ins AnyShaped:$x, AnyShaped:$weights, Optional<AnyShaped>:$bias, AnyShaped:$out,
                   DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                   DenseI64ArrayAttr:$pads, F32Attr:$low, F32Attr:$high);
}

def Vmpk_WinogradOp : Vmpk_KernelOp<"winograd"> {
  let summary = "3x3 convolution of NHWC images, stride 1, by Winograd's F(2x2) or F(4x4), with bias and clamp";
  let description = [{
    `weights` are the transformed ones, (tile + 2)^2 x F/16 x C x 16; `pads` as for vmpk.conv. On memrefs, `scratch`
    (images x workgroups x floats) holds what a workgroup is working on.
  }];
  let arguments = (ins AnyShaped:$x, AnyShaped:$weights, AnyShaped:$bias, Optional<AnyShaped>:$scratch, AnyShaped:$out,
                   DenseI64ArrayAttr:$pads, F32Attr:$low, F32Attr:$high);
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutMutable(); }
    /// Rows and columns of the output that one tile covers: 2 or 4.
    int64_t getTile();
    /// Output rows of one workgroup, a multiple of the tile.
    int64_t getWorkgroupRows();
    /// Tiles that a workgroup works on together.
    int64_t getBlock();
  }];
}

def Vmpk_DepthwiseOp : Vmpk_KernelOp<"depthwise"> {
  let summary = "depthwise 2-D convolution of NHWC images with weights (KH*KW) x C, bias and clamp";
  let arguments = (ins AnyShaped:$x, AnyShaped:$weights, Optional<AnyShaped>:$bias, AnyShaped:$out,
                   DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations,
                   DenseI64ArrayAttr:$pads, F32Attr:$low, F32Attr:$high);
}

def Vmpk_DispatchOp : Vmpk_Op<"dispatch"> {
  let summary = "hands a grid of workgroups to the host";
  let description = [{
    ```mlir
    vmpk.dispatch @conv_3[%x, %y, %z](%input, %output : memref<..>, memref<..>) {ordinal = 3 : i32}
    ```
    Operands are contiguous memrefs (bindings) and index values (constants), in the order of the callee's parameters.
    Runs at the latest when the next vmpk.barrier returns.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Index:$x, Index:$y, Index:$z, Variadic<AnyType>:$inputs,
                   I32Attr:$ordinal);
  let assemblyFormat = [{
    $callee `[` $x `,` $y `,` $z `]` `(` $inputs `:` type($inputs) `)` attr-dict
  }];
}

def Vmpk_BarrierOp : Vmpk_Op<"barrier"> {
  let summary = "every dispatch before it is done when it ends";
  let assemblyFormat = "attr-dict";
}

def Vmpk_ViewOp : Vmpk_Op<"view", [Pure]> {
  let summary = "a contiguous memref at a bare pointer";
  let arguments = (ins AnyType:$pointer, Variadic<Index>:$sizes);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$pointer `[` $sizes `]` attr-dict `:` type($pointer) `to` type($result)";
}

def Vmpk_CallOp : Vmpk_Op<"call"> {
  let summary = "calls a function of the kernel library";
  let description = [{
    A memref operand is passed as the pointer to its first element, an index as i64, other scalars as they are.
  }];
  let arguments = (ins StrAttr:$callee, Variadic<AnyType>:$inputs);
  let assemblyFormat = "$callee `(` $inputs `:` type($inputs) `)` attr-dict";
}

def Vmpk_NullOp : Vmpk_Op<"null", [Pure]> {
  let summary = "a null pointer, for an optional operand of a kernel";
  let results = (outs AnyType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Vmpk_WeightOp : Vmpk_Op<"weight", [Symbol]> {
  let summary = "a constant tensor at its byte offset in the weights blob";
  let arguments = (ins SymbolNameAttr:$sym_name, ElementsAttr:$value, I64Attr:$offset);
  let assemblyFormat = "$sym_name `at` $offset attr-dict `=` $value";
}

#endif // VMPK_OPS
