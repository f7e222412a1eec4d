// Serial host, thread pool, trace: the same results, every workgroup once, several instances at a time.
#include "Demo.h"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <thread>

using namespace demo;

namespace {

struct Pool {
  vmpk_thread_pool_t *pool = nullptr;
  vmpk_error_t error{};
  explicit Pool(uint32_t threads) { vmpk_thread_pool_create(threads, nullptr, &pool, &error); }
  Pool(const Pool &) = delete;
  ~Pool() { vmpk_thread_pool_destroy(pool); }
  const vmpk_host_t *host() const { return vmpk_thread_pool_host(pool); }
};

TEST(ThreadPool, computesWhatTheSerialHostDoes) {
  for (uint32_t threads : {1u, 2u, 5u}) {
    Pool pool(threads);
    ASSERT_NE(pool.pool, nullptr) << pool.error.message;
    EXPECT_EQ(vmpk_thread_pool_size(pool.pool), threads);
    Loaded loaded(demo_query, pool.host());
    for (int64_t rows = 1; rows <= 64; ++rows) {
      Affine affine(rows);
      ASSERT_EQ(affine.run(loaded.instance), VMPK_STATUS_OK);
      EXPECT_EQ(affine.y, affine.expected());
    }
  }
}

TEST(ThreadPool, serializesNothingBetweenInstances) {
  Pool pool(3);
  Loaded first(demo_query, pool.host());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      vmpk_instance_t *instance = nullptr;
      if (vmpk_instance_create(first.module, pool.host(), nullptr, &instance, nullptr) != VMPK_STATUS_OK)
        ++wrong;
      for (int64_t rows = 1; rows <= 64; ++rows) {
        Affine affine(rows);
        if (affine.run(instance) != VMPK_STATUS_OK || affine.y != affine.expected())
          ++wrong;
      }
      vmpk_instance_destroy(instance);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

/// A dispatch's argument block with one pointer.
struct Arguments {
  vmpk_dispatch_t block{};
  explicit Arguments(void *pointer) {
    block.operand_count = 1;
    block.operands[0].pointer = pointer;
  }
};

TEST(ThreadPool, runsEveryWorkgroupOnce) {
  Pool pool(4);
  constexpr uint32_t X = 7, Y = 11, Z = 13;
  auto counts = std::make_unique<std::atomic<int>[]>(X * Y * Z);
  Arguments args(counts.get());
  vmpk_dispatch_fn count = [](const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) -> vmpk_status_t {
    if (x >= X || y >= Y || z >= Z)
      return VMPK_STATUS_INTERNAL;
    ++static_cast<std::atomic<int> *>(args->operands[0].pointer)[x + X * (y + Y * z)];
    return VMPK_STATUS_OK;
  };
  for (int repeat = 1; repeat <= 50; ++repeat) {
    ASSERT_EQ(pool.host()->dispatch(pool.host(), count, &args.block, X, Y, Z), VMPK_STATUS_OK);
    for (uint32_t i = 0; i < X * Y * Z; ++i)
      ASSERT_EQ(counts[i], repeat);
  }
  EXPECT_EQ(pool.host()->dispatch(pool.host(), count, &args.block, X, 0, Z), VMPK_STATUS_OK);
  EXPECT_EQ(counts[0], 50);
}

struct Nested {
  const vmpk_host_t *host;
  std::atomic<int> count{0};
};

TEST(ThreadPool, dispatchesFromWorkgroups) {
  Pool pool(3);
  Nested nested{pool.host()};
  Arguments args(&nested);
  vmpk_dispatch_fn inner = [](const vmpk_dispatch_t *args, uint32_t, uint32_t, uint32_t) -> vmpk_status_t {
    ++static_cast<Nested *>(args->operands[0].pointer)->count;
    return VMPK_STATUS_OK;
  };
  static vmpk_dispatch_fn innerFn;
  innerFn = inner;
  vmpk_dispatch_fn outer = [](const vmpk_dispatch_t *args, uint32_t, uint32_t, uint32_t) -> vmpk_status_t {
    const vmpk_host_t *host = static_cast<Nested *>(args->operands[0].pointer)->host;
    return host->dispatch(host, innerFn, args, 10, 1, 1);
  };
  ASSERT_EQ(pool.host()->dispatch(pool.host(), outer, &args.block, 20, 1, 1), VMPK_STATUS_OK);
  EXPECT_EQ(nested.count, 200);
}

TEST(ThreadPool, reportsAFailure) {
  Pool pool(3);
  Loaded loaded(demo_query, pool.host());
  std::vector<int32_t> codes(1000), copied(1000);
  vmpk_tensor_t input = tensor(codes.data(), 4000, {1000}), output = tensor(copied.data(), 4000, {});
  for (int at : {0, 1, 500, 999}) {
    codes.assign(1000, 0);
    codes[at] = VMPK_STATUS_UNSUPPORTED;
    EXPECT_EQ(vmpk_instance_invoke(loaded.instance, 2, &input, 1, &output, 1, &loaded.error), VMPK_STATUS_UNSUPPORTED);
  }
  codes.assign(1000, 0);
  EXPECT_EQ(vmpk_instance_invoke(loaded.instance, 2, &input, 1, &output, 1, &loaded.error), VMPK_STATUS_OK);
}

TEST(ThreadPool, refusesTooManyThreads) {
  Pool pool(100000);
  EXPECT_EQ(pool.pool, nullptr);
  EXPECT_EQ(pool.error.message, std::string("threads is 100000 when it should be at most 256"));
}

TEST(Trace, countsWhatIsDispatched) {
  Pool pool(2);
  for (const vmpk_host_t *inner : {vmpk_serial_host(), pool.host()}) {
    vmpk_trace_t *trace = nullptr;
    ASSERT_EQ(vmpk_trace_create(inner, 4, nullptr, &trace, nullptr), VMPK_STATUS_OK);
    Loaded loaded(demo_query, vmpk_trace_host(trace));
    for (int i = 0; i < 3; ++i) {
      Affine affine(17);
      ASSERT_EQ(affine.run(loaded.instance), VMPK_STATUS_OK);
      EXPECT_EQ(affine.y, affine.expected());
    }
    EXPECT_EQ(vmpk_trace_entry(trace, 0).count, 3u);
    EXPECT_EQ(vmpk_trace_entry(trace, 1).count, 3u);
    EXPECT_GT(vmpk_trace_entry(trace, 0).nanoseconds, 0u);
    EXPECT_EQ(vmpk_trace_entry(trace, 2).count, 0u);
    EXPECT_EQ(vmpk_trace_entry(trace, 99).count, 0u);
    vmpk_trace_reset(trace);
    EXPECT_EQ(vmpk_trace_entry(trace, 0).count, 0u);
    vmpk_trace_destroy(trace);
  }
}

} // namespace
