// Binding shapes, measuring, running.
#include "Demo.h"

#include <gtest/gtest.h>

using namespace demo;

namespace {

TEST(Instance, computes) {
  Loaded loaded;
  ASSERT_NE(loaded.instance, nullptr) << loaded.error.message;
  for (int64_t rows : {1, 2, 7, 64, 3}) {
    Affine affine(rows);
    ASSERT_EQ(affine.run(loaded.instance, &loaded.error), VMPK_STATUS_OK) << loaded.error.message;
    EXPECT_EQ(affine.y, affine.expected());
    EXPECT_EQ(loaded.error.message, std::string());
  }
}

TEST(Instance, growsItsArenaAndKeepsIt) {
  Loaded loaded;
  EXPECT_EQ(vmpk_instance_arena_size(loaded.instance), 0u);
  Affine(2).run(loaded.instance);
  EXPECT_EQ(vmpk_instance_arena_size(loaded.instance), 128u + 2 * 3 * 4);
  Affine(64).run(loaded.instance);
  EXPECT_EQ(vmpk_instance_arena_size(loaded.instance), 128u + 64 * 3 * 4);
  Affine(2).run(loaded.instance);
  EXPECT_EQ(vmpk_instance_arena_size(loaded.instance), 128u + 64 * 3 * 4);
}

TEST(Instance, measuresWithoutData) {
  Loaded loaded;
  vmpk_tensor_t inputs[] = {tensor(nullptr, 0, {5, 4}), tensor(nullptr, 0, {5})};
  vmpk_tensor_t output{};
  uint64_t arena = 0;
  ASSERT_EQ(vmpk_instance_measure(loaded.instance, 0, inputs, 2, &output, 1, &arena, &loaded.error), VMPK_STATUS_OK)
      << loaded.error.message;
  EXPECT_EQ(output.dtype, uint32_t(VMPK_DTYPE_F32));
  EXPECT_EQ(output.rank, 2u);
  EXPECT_EQ(output.dims[0], 5);
  EXPECT_EQ(output.dims[1], 3);
  EXPECT_EQ(output.size, 5u * 3 * 4);
  EXPECT_EQ(arena, 128u + 5 * 3 * 4);
}

TEST(Instance, computesOutputDims) {
  Loaded loaded;
  std::vector<float> v = {1, 2, 3, 4, 5}, half(3);
  vmpk_tensor_t input = tensor(v.data(), 20, {5}), output = tensor(half.data(), 12, {});
  ASSERT_EQ(vmpk_instance_invoke(loaded.instance, 1, &input, 1, &output, 1, &loaded.error), VMPK_STATUS_OK)
      << loaded.error.message;
  EXPECT_EQ(output.dims[0], 3);
  EXPECT_EQ(half, (std::vector<float>{1, 3, 5}));
}

TEST(Instance, takesEmptyTensors) {
  Loaded loaded;
  vmpk_tensor_t input = tensor(nullptr, 0, {0}), output = tensor(nullptr, 0, {});
  ASSERT_EQ(vmpk_instance_invoke(loaded.instance, 1, &input, 1, &output, 1, &loaded.error), VMPK_STATUS_OK)
      << loaded.error.message;
  EXPECT_EQ(output.rank, 1u);
  EXPECT_EQ(output.dims[0], 0);
}

/// One wrong call of `affine`, made from a right one.
struct Wrong {
  Loaded loaded;
  float x[64 * 4 + 4] = {}, y[64 * 3 + 4] = {};
  int32_t mask[64] = {};
  vmpk_tensor_t inputs[2] = {tensor(x, 2 * 4 * 4, {2, 4}), tensor(mask, 2 * 4, {2})};
  vmpk_tensor_t output = tensor(y, 2 * 3 * 4, {});
  uint32_t function = 0, inputCount = 2, outputCount = 1;

  std::string fails(vmpk_status_t status) {
    EXPECT_EQ(vmpk_instance_invoke(loaded.instance, function, inputs, inputCount, &output, outputCount, &loaded.error),
              status);
    EXPECT_EQ(loaded.error.status, status);
    return loaded.error.message;
  }
};

TEST(Instance, theRightCallIsRight) { EXPECT_EQ(Wrong().fails(VMPK_STATUS_OK), ""); }

TEST(Instance, refusesStaticDim) {
  Wrong wrong;
  wrong.inputs[0].dims[1] = 5;
  EXPECT_EQ(wrong.fails(VMPK_STATUS_SHAPE_MISMATCH), "input 'x': dim 1 is 5 when it should be 4");
}

TEST(Instance, refusesUnequalDimsOfOneName) {
  Wrong wrong;
  wrong.inputs[1].dims[0] = 3;
  EXPECT_EQ(wrong.fails(VMPK_STATUS_SHAPE_MISMATCH),
            "input 'mask': dim 0 ('N') is 3 when it should be 2, as it was before");
}

TEST(Instance, refusesDimsOutsideTheirBounds) {
  Wrong wrong;
  wrong.inputs[0].dims[0] = wrong.inputs[1].dims[0] = 65;
  EXPECT_EQ(wrong.fails(VMPK_STATUS_OUT_OF_RANGE), "input 'x': dim 0 ('N') is 65 when it should be at most 64");
  wrong.inputs[0].dims[0] = wrong.inputs[1].dims[0] = 0;
  EXPECT_EQ(wrong.fails(VMPK_STATUS_OUT_OF_RANGE), "input 'x': dim 0 ('N') is 0 when it should be at least 1");
  wrong.inputs[0].dims[0] = wrong.inputs[1].dims[0] = -7;
  EXPECT_EQ(wrong.fails(VMPK_STATUS_OUT_OF_RANGE), "input 'x': dim 0 ('N') is -7 when it should be at least 1");
}

TEST(Instance, refusesRankDtypeAndCounts) {
  Wrong rank;
  rank.inputs[0].rank = 3;
  EXPECT_EQ(rank.fails(VMPK_STATUS_SHAPE_MISMATCH), "input 'x': rank is 3 when it should be 2");
  Wrong dtype;
  dtype.inputs[1].dtype = VMPK_DTYPE_F32;
  EXPECT_EQ(dtype.fails(VMPK_STATUS_INVALID_ARGUMENT), "input 'mask': dtype is f32 when it should be i32");
  Wrong counts;
  counts.inputCount = 1;
  EXPECT_EQ(counts.fails(VMPK_STATUS_INVALID_ARGUMENT), "function 'affine': input count is 1 when it should be 2");
  Wrong function;
  function.function = 3;
  EXPECT_EQ(function.fails(VMPK_STATUS_NOT_FOUND), "function 3 of 3 does not exist");
}

TEST(Instance, refusesSizesAndAlignments) {
  Wrong size;
  size.inputs[0].size = 31;
  EXPECT_EQ(size.fails(VMPK_STATUS_INVALID_ARGUMENT), "input 'x': size is 31 bytes when it should be 32");
  Wrong room;
  room.output.size = 20;
  EXPECT_EQ(room.fails(VMPK_STATUS_INVALID_ARGUMENT), "output 'y': size is 20 bytes when it should be at least 24");
  Wrong more;
  more.output.size = 1000;
  more.fails(VMPK_STATUS_OK);
  EXPECT_EQ(more.output.size, 1000u);
  Wrong null;
  null.inputs[1].data = nullptr;
  EXPECT_EQ(null.fails(VMPK_STATUS_INVALID_ARGUMENT), "input 'mask': data is NULL");
  Wrong unaligned;
  unaligned.inputs[0].data = reinterpret_cast<char *>(unaligned.x) + 1;
  EXPECT_NE(unaligned.fails(VMPK_STATUS_INVALID_ARGUMENT).find("when it should be aligned to 4"), std::string::npos);
}

TEST(Instance, refusesOverlaps) {
  Wrong wrong;
  wrong.output.data = wrong.x + 7;
  EXPECT_EQ(wrong.fails(VMPK_STATUS_INVALID_ARGUMENT), "output 'y' overlaps input 0 in memory");
  wrong.output.data = wrong.x + 8;
  EXPECT_EQ(wrong.fails(VMPK_STATUS_OK), "");
}

TEST(Instance, refusesSizesThatCannotBeCounted) {
  Loaded loaded;
  float value = 0;
  vmpk_tensor_t input = tensor(&value, 4, {INT64_MAX}), output = tensor(&value, 4, {});
  EXPECT_EQ(vmpk_instance_invoke(loaded.instance, 1, &input, 1, &output, 1, &loaded.error), VMPK_STATUS_OUT_OF_RANGE);
  EXPECT_EQ(loaded.error.message, std::string("input 'v': its dims are too large to count bytes with"));
}

TEST(Instance, saysThatTheModuleFailed) {
  Loaded loaded;
  int32_t codes[] = {0, VMPK_STATUS_INTERNAL, 0}, copied[3];
  vmpk_tensor_t input = tensor(codes, 12, {3}), output = tensor(copied, 12, {});
  EXPECT_EQ(vmpk_instance_invoke(loaded.instance, 2, &input, 1, &output, 1, &loaded.error), VMPK_STATUS_INTERNAL);
  EXPECT_EQ(loaded.error.message, std::string("function 'fail' failed: internal error"));
}

/// An allocator that has a budget of calls and counts what is out.
struct Budget {
  int calls, outstanding = 0;
  vmpk_allocator_t allocator{this, allocate, release};
  static void *allocate(void *context, uint64_t size, uint64_t alignment) {
    auto *self = static_cast<Budget *>(context);
    if (self->calls-- <= 0)
      return nullptr;
    ++self->outstanding;
    return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  }
  static void release(void *context, void *memory) {
    --static_cast<Budget *>(context)->outstanding;
    std::free(memory);
  }
};

TEST(Instance, survivesEveryFailedAllocation) {
  for (int calls = 0; calls < 4; ++calls) {
    Budget budget{calls};
    vmpk_module_t *module = nullptr;
    vmpk_instance_t *instance = nullptr;
    vmpk_error_t error;
    vmpk_status_t status = vmpk_module_create(demo_query, &budget.allocator, &module, &error);
    if (status == VMPK_STATUS_OK)
      status = vmpk_instance_create(module, nullptr, &budget.allocator, &instance, &error);
    if (status == VMPK_STATUS_OK)
      status = Affine(3).run(instance, &error);
    EXPECT_EQ(status, calls < 3 ? VMPK_STATUS_OUT_OF_MEMORY : VMPK_STATUS_OK);
    if (instance && status != VMPK_STATUS_OK)
      EXPECT_EQ(error.message, std::string("no memory for the arena: 164 bytes"));
    vmpk_instance_destroy(instance);
    vmpk_module_release(module);
    EXPECT_EQ(budget.outstanding, 0);
  }
}

TEST(Instance, keepsItsModule) {
  Loaded loaded;
  vmpk_module_release(loaded.module);
  loaded.module = nullptr;
  Affine affine(4);
  EXPECT_EQ(affine.run(loaded.instance), VMPK_STATUS_OK);
  EXPECT_EQ(affine.y, affine.expected());
}

} // namespace
