/* A pool of threads that share the work of each dispatch.
 *
 *   invoke's thread: put a job on the list ─► wake the workers ─► take chunks too ─► wait until no worker is in it
 *   worker:          sleep ─► take a job from the list ─► take chunks by an atomic counter ─► leave the job
 *
 * A dispatch is complete when it returns, so a barrier has nothing to wait for. Jobs live on the stacks of the threads
 * that dispatch; several may be on the list, from several instances or from workgroups that dispatch themselves. Since
 * the dispatching thread works on its own job, no job ever waits for a worker. */
#define _GNU_SOURCE
#include "../src/allocator.h"
#include "../src/error.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum {
  MAX_THREADS = 256,
  CHUNKS_PER_THREAD = 8, /* enough to even out what threads get, few enough to keep the counter cool */
  SPINS = 2000,          /* a few microseconds of looking for the next job before a worker sleeps */
  STACK_SIZE = 2 << 20   /* modules publish what they need: far less */
};

typedef struct job {
  struct job *next;
  vmpk_dispatch_fn fn;
  const vmpk_dispatch_t *args;
  uint32_t grid_x, grid_y;
  uint64_t total, chunk;       /* workgroups */
  _Atomic uint64_t taken;      /* workgroups handed out; beyond total when there are no more */
  _Atomic vmpk_status_t first; /* failure, or OK */
  _Atomic uint32_t workers;    /* inside this job; raised only under the pool's mutex */
} job_t;

struct vmpk_thread_pool {
  vmpk_allocator_t allocator;
  vmpk_host_t host;
  pthread_mutex_t mutex;
  pthread_cond_t work, idle; /* a job was put on the list; a worker left a job */
  job_t *jobs;               /* those with workgroups left to take */
  _Atomic uint32_t posted;   /* counts jobs put on the list, for workers that spin */
  int stop;
  uint32_t worker_count;
  pthread_t workers[];
};

/* ---- Jobs ------------------------------------------------------------------------------------------------------- */

static void run_workgroups(job_t *job, uint64_t begin, uint64_t end) {
  uint32_t x = (uint32_t)(begin % job->grid_x), y = (uint32_t)(begin / job->grid_x % job->grid_y);
  uint32_t z = (uint32_t)(begin / job->grid_x / job->grid_y);
  for (uint64_t i = begin; i < end; ++i) {
    vmpk_status_t status = job->fn(job->args, x, y, z);
    if (status != VMPK_STATUS_OK) {
      vmpk_status_t none = VMPK_STATUS_OK;
      atomic_compare_exchange_strong(&job->first, &none, status);
      atomic_store(&job->taken, job->total); /* the rest is not worth doing */
      return;
    }
    if (++x == job->grid_x) {
      x = 0;
      if (++y == job->grid_y) {
        y = 0;
        ++z;
      }
    }
  }
}

static void work_on(job_t *job) {
  for (;;) {
    uint64_t begin = atomic_fetch_add(&job->taken, job->chunk);
    if (begin >= job->total)
      return;
    uint64_t left = job->total - begin;
    run_workgroups(job, begin, begin + (left < job->chunk ? left : job->chunk));
  }
}

/* Takes the job off the list; fine when it is not on it. Under the mutex. */
static void unlist(vmpk_thread_pool_t *pool, job_t *job) {
  for (job_t **link = &pool->jobs; *link; link = &(*link)->next)
    if (*link == job) {
      *link = job->next;
      return;
    }
}

/* ---- Workers ---------------------------------------------------------------------------------------------------- */

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Looks for a new job for a moment, so that the next dispatch of a schedule finds its workers awake. */
static void spin(vmpk_thread_pool_t *pool, uint32_t seen) {
  for (int i = 0; i < SPINS && atomic_load_explicit(&pool->posted, memory_order_relaxed) == seen; ++i)
    pause_briefly();
}

static void *worker_main(void *argument) {
  vmpk_thread_pool_t *pool = argument;
  pthread_mutex_lock(&pool->mutex);
  while (!pool->stop) {
    job_t *job = pool->jobs;
    if (!job) {
      uint32_t seen = atomic_load(&pool->posted);
      pthread_mutex_unlock(&pool->mutex);
      spin(pool, seen);
      pthread_mutex_lock(&pool->mutex);
      if (!pool->jobs && !pool->stop)
        pthread_cond_wait(&pool->work, &pool->mutex);
      continue;
    }
    atomic_fetch_add(&job->workers, 1);
    pthread_mutex_unlock(&pool->mutex);
    work_on(job);
    pthread_mutex_lock(&pool->mutex);
    unlist(pool, job); /* it has no workgroups left */
    if (atomic_fetch_sub(&job->workers, 1) == 1)
      pthread_cond_broadcast(&pool->idle);
  }
  pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

/* ---- The host --------------------------------------------------------------------------------------------------- */

static void post(vmpk_thread_pool_t *pool, job_t *job) {
  pthread_mutex_lock(&pool->mutex);
  job_t **end = &pool->jobs;
  while (*end)
    end = &(*end)->next;
  *end = job;
  atomic_fetch_add(&pool->posted, 1);
  uint64_t useful = (job->total - 1) / job->chunk; /* threads beside this one that can find a chunk */
  if (useful >= pool->worker_count)
    pthread_cond_broadcast(&pool->work);
  else
    for (; useful; --useful)
      pthread_cond_signal(&pool->work);
  pthread_mutex_unlock(&pool->mutex);
}

/* Takes the job off the list and waits until no worker touches it: its memory goes away. */
static void finish(vmpk_thread_pool_t *pool, job_t *job) {
  pthread_mutex_lock(&pool->mutex);
  unlist(pool, job);
  while (atomic_load(&job->workers))
    pthread_cond_wait(&pool->idle, &pool->mutex);
  pthread_mutex_unlock(&pool->mutex);
}

static vmpk_status_t dispatch(const vmpk_host_t *host, vmpk_dispatch_fn fn, const vmpk_dispatch_t *args,
                              uint32_t grid_x, uint32_t grid_y, uint32_t grid_z) {
  vmpk_thread_pool_t *pool = host->context;
  uint64_t total, plane = (uint64_t)grid_x * grid_y;
  if (__builtin_mul_overflow(plane, grid_z, &total) || total > UINT64_MAX / 2)
    return VMPK_STATUS_INVALID_ARGUMENT;
  if (!total)
    return VMPK_STATUS_OK;
  job_t job = {NULL, fn, args, grid_x, grid_y, total, 1, 0, VMPK_STATUS_OK, 0};
  uint64_t chunks = ((uint64_t)pool->worker_count + 1) * CHUNKS_PER_THREAD;
  if (total > chunks)
    job.chunk = total / chunks;
  int alone = total == 1 || !pool->worker_count;
  if (!alone)
    post(pool, &job);
  work_on(&job);
  if (!alone)
    finish(pool, &job);
  return atomic_load(&job.first);
}

static void *allocate(const vmpk_host_t *host, uint64_t size) {
  const vmpk_thread_pool_t *pool = host->context;
  return vmpk_allocator_take(&pool->allocator, size);
}

static void release(const vmpk_host_t *host, void *memory) {
  const vmpk_thread_pool_t *pool = host->context;
  vmpk_allocator_give(&pool->allocator, memory);
}

/* ---- Making one ------------------------------------------------------------------------------------------------- */

static uint32_t usable_cpus(void) {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return (uint32_t)CPU_COUNT(&set);
#endif
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (uint32_t)online : 1;
}

static int start_worker(vmpk_thread_pool_t *pool) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0)
    return 0;
  pthread_attr_setstacksize(&attributes, STACK_SIZE);
  int failed = pthread_create(&pool->workers[pool->worker_count], &attributes, worker_main, pool);
  pthread_attr_destroy(&attributes);
  if (!failed)
    ++pool->worker_count;
  return !failed;
}

vmpk_status_t vmpk_thread_pool_create(uint32_t threads, const vmpk_allocator_t *allocator, vmpk_thread_pool_t **out,
                                      vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!out)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "no place for the thread pool: out is NULL");
  *out = NULL;
  if (threads > MAX_THREADS)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "threads is %u when it should be at most %u", threads,
                     (unsigned)MAX_THREADS);
  threads = threads ? threads : usable_cpus();
  threads = threads < MAX_THREADS ? threads : MAX_THREADS;
  vmpk_allocator_t memory = vmpk_allocator_or_default(allocator);
  vmpk_thread_pool_t *pool = vmpk_allocator_zeroed(&memory, sizeof *pool + (threads - 1) * sizeof pool->workers[0]);
  if (!pool)
    return vmpk_fail(error, VMPK_STATUS_OUT_OF_MEMORY, "no memory for a thread pool");
  pool->allocator = memory;
  pool->host.size = sizeof pool->host;
  pool->host.abi_version = VMPK_ABI_VERSION;
  pool->host.context = pool;
  pool->host.dispatch = dispatch;
  pool->host.allocate = allocate;
  pool->host.release = release;
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->work, NULL);
  pthread_cond_init(&pool->idle, NULL);
  while (pool->worker_count + 1 < threads)
    if (!start_worker(pool)) {
      uint32_t started = pool->worker_count;
      vmpk_thread_pool_destroy(pool);
      return vmpk_fail(error, VMPK_STATUS_OUT_OF_MEMORY, "the system gave %u threads when %u were asked for", started,
                       threads - 1);
    }
  *out = pool;
  return VMPK_STATUS_OK;
}

void vmpk_thread_pool_destroy(vmpk_thread_pool_t *pool) {
  if (!pool)
    return;
  pthread_mutex_lock(&pool->mutex);
  pool->stop = 1;
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->mutex);
  for (uint32_t i = 0; i < pool->worker_count; ++i)
    pthread_join(pool->workers[i], NULL);
  pthread_cond_destroy(&pool->idle);
  pthread_cond_destroy(&pool->work);
  pthread_mutex_destroy(&pool->mutex);
  vmpk_allocator_t allocator = pool->allocator;
  vmpk_allocator_give(&allocator, pool);
}

const vmpk_host_t *vmpk_thread_pool_host(const vmpk_thread_pool_t *pool) { return &pool->host; }
uint32_t vmpk_thread_pool_size(const vmpk_thread_pool_t *pool) { return pool->worker_count + 1; }
