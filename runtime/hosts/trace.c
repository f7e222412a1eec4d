/* A host that measures what another one does. */
#define _GNU_SOURCE
#include "../src/allocator.h"
#include "../src/error.h"

#include <stdatomic.h>
#include <time.h>

typedef struct counter {
  _Atomic uint64_t nanoseconds, count;
} counter_t;

struct vmpk_trace {
  vmpk_allocator_t allocator;
  vmpk_host_t host;
  const vmpk_host_t *inner;
  uint32_t dispatch_count;
  counter_t counters[];
};

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* What a module does when its host has no dispatch function. */
static vmpk_status_t run_grid(vmpk_dispatch_fn fn, const vmpk_dispatch_t *args, uint32_t grid_x, uint32_t grid_y,
                              uint32_t grid_z) {
  for (uint32_t z = 0; z < grid_z; ++z)
    for (uint32_t y = 0; y < grid_y; ++y)
      for (uint32_t x = 0; x < grid_x; ++x) {
        vmpk_status_t status = fn(args, x, y, z);
        if (status != VMPK_STATUS_OK)
          return status;
      }
  return VMPK_STATUS_OK;
}

static vmpk_status_t dispatch(const vmpk_host_t *host, vmpk_dispatch_fn fn, const vmpk_dispatch_t *args,
                              uint32_t grid_x, uint32_t grid_y, uint32_t grid_z) {
  vmpk_trace_t *trace = host->context;
  const vmpk_host_t *inner = trace->inner;
  uint32_t ordinal = args->ordinal; /* read first: the arguments need not outlive the dispatch */
  uint64_t begin = now();
  vmpk_status_t status = inner->dispatch ? inner->dispatch(inner, fn, args, grid_x, grid_y, grid_z)
                                         : run_grid(fn, args, grid_x, grid_y, grid_z);
  if (status == VMPK_STATUS_OK && inner->dispatch && inner->barrier)
    status = inner->barrier(inner);
  if (ordinal < trace->dispatch_count) {
    atomic_fetch_add_explicit(&trace->counters[ordinal].nanoseconds, now() - begin, memory_order_relaxed);
    atomic_fetch_add_explicit(&trace->counters[ordinal].count, 1, memory_order_relaxed);
  }
  return status;
}

/* The inner host gets itself, not the trace, as its first argument. */
static vmpk_status_t barrier(const vmpk_host_t *host) {
  const vmpk_host_t *inner = ((vmpk_trace_t *)host->context)->inner;
  return inner->barrier ? inner->barrier(inner) : VMPK_STATUS_OK;
}
static void *allocate(const vmpk_host_t *host, uint64_t size) {
  const vmpk_host_t *inner = ((vmpk_trace_t *)host->context)->inner;
  return inner->allocate(inner, size);
}
static void release(const vmpk_host_t *host, void *memory) {
  const vmpk_host_t *inner = ((vmpk_trace_t *)host->context)->inner;
  inner->release(inner, memory);
}
static void *resolve(const vmpk_host_t *host, const char *name, uint64_t name_size, uint32_t version) {
  const vmpk_host_t *inner = ((vmpk_trace_t *)host->context)->inner;
  return inner->resolve(inner, name, name_size, version);
}
static void report(const vmpk_host_t *host, vmpk_status_t status, uint32_t dispatch_ordinal) {
  const vmpk_host_t *inner = ((vmpk_trace_t *)host->context)->inner;
  inner->report(inner, status, dispatch_ordinal);
}

/* A function that the inner host leaves to the module stays NULL here. */
static void wrap(vmpk_host_t *host, const vmpk_host_t *inner, vmpk_trace_t *trace) {
  host->size = sizeof *host;
  host->abi_version = VMPK_ABI_VERSION;
  host->context = trace;
  host->dispatch = dispatch;
  host->barrier = barrier;
  host->allocate = inner->allocate ? allocate : NULL;
  host->release = inner->release ? release : NULL;
  host->resolve = inner->resolve ? resolve : NULL;
  host->report = inner->report ? report : NULL;
}

vmpk_status_t vmpk_trace_create(const vmpk_host_t *inner, uint32_t dispatch_count, const vmpk_allocator_t *allocator,
                                vmpk_trace_t **out, vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!out)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "no place for the trace: out is NULL");
  *out = NULL;
  inner = inner ? inner : vmpk_serial_host();
  if (inner->size < sizeof *inner)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "the inner host has %u bytes when it should have %u",
                     inner->size, (unsigned)sizeof *inner);
  vmpk_allocator_t memory = vmpk_allocator_or_default(allocator);
  vmpk_trace_t *trace = vmpk_allocator_zeroed(&memory, sizeof *trace + (uint64_t)dispatch_count * sizeof(counter_t));
  if (!trace)
    return vmpk_fail(error, VMPK_STATUS_OUT_OF_MEMORY, "no memory for a trace of %u dispatches", dispatch_count);
  trace->allocator = memory;
  trace->inner = inner;
  trace->dispatch_count = dispatch_count;
  wrap(&trace->host, inner, trace);
  *out = trace;
  return VMPK_STATUS_OK;
}

void vmpk_trace_destroy(vmpk_trace_t *trace) {
  if (!trace)
    return;
  vmpk_allocator_t allocator = trace->allocator;
  vmpk_allocator_give(&allocator, trace);
}

const vmpk_host_t *vmpk_trace_host(const vmpk_trace_t *trace) { return &trace->host; }

vmpk_trace_entry_t vmpk_trace_entry(const vmpk_trace_t *trace, uint32_t dispatch_ordinal) {
  vmpk_trace_entry_t entry = {0, 0};
  if (dispatch_ordinal < trace->dispatch_count) {
    entry.nanoseconds = atomic_load(&trace->counters[dispatch_ordinal].nanoseconds);
    entry.count = atomic_load(&trace->counters[dispatch_ordinal].count);
  }
  return entry;
}

void vmpk_trace_reset(vmpk_trace_t *trace) {
  for (uint32_t i = 0; i < trace->dispatch_count; ++i) {
    atomic_store(&trace->counters[i].nanoseconds, 0);
    atomic_store(&trace->counters[i].count, 0);
  }
}
