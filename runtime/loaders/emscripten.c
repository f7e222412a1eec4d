/* Side modules in Emscripten programs, which are linked with -sMAIN_MODULE.
 *
 *   vmpk_dynamic_module_open        a file of the virtual file system; the thread waits while the code is compiled
 *   vmpk_dynamic_module_open_async  emscripten_dlopen: fetched and compiled meanwhile, `done` is called later
 *
 * The code that a path named first stays its code while any module of it lives: the linker goes by names. Code of a
 * later version is opened under another name. */
#include "../src/error.h"
#include "../src/module.h"

#include <dlfcn.h>
#include <emscripten.h>
#include <string.h>

static void unload(const vmpk_allocator_t *allocator, void *handle) {
  (void)allocator;
  dlclose(handle);
}

/* dlerror's words, which begin with the name of the file. */
static vmpk_status_t fail_to_load(const char *path, vmpk_error_t *error) {
  const char *words = dlerror();
  return vmpk_fail(error, VMPK_STATUS_IO, "'%.200s' cannot be loaded: %.200s", path, words ? words : "no reason given");
}

/* Takes the handle over, also on failure. */
static vmpk_status_t make_module(void *handle, const char *path, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                                 vmpk_error_t *error) {
  void *symbol = dlsym(handle, "vmpk_query");
  vmpk_status_t status;
  if (symbol) {
    vmpk_query_fn query;
    memcpy(&query, &symbol, sizeof query); /* POSIX, not C, lets an object pointer be a function's */
    vmpk_code_t code = {handle, unload, NULL};
    status = vmpk_module_create_from(query, &code, allocator, out, error);
  } else {
    status = vmpk_fail(error, VMPK_STATUS_NOT_FOUND, "'%.200s' is no vmpack module: it exports no vmpk_query", path);
  }
  if (status != VMPK_STATUS_OK)
    dlclose(handle);
  return status;
}

vmpk_status_t vmpk_dynamic_module_open(const char *path, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                                       vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!out || !path)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "path or out is NULL");
  *out = NULL;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return handle ? make_module(handle, path, allocator, out, error) : fail_to_load(path, error);
}

vmpk_status_t vmpk_dynamic_module_reload(const vmpk_module_t *module, vmpk_module_t **out, vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!out || !module)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "module or out is NULL");
  *out = NULL;
  return vmpk_fail(error, VMPK_STATUS_UNSUPPORTED,
                   "side modules cannot be opened again by the same name: open the new code under another one");
}

vmpk_status_t vmpk_dynamic_module_open_bundle(const void *bytes, uint64_t size, const vmpk_allocator_t *allocator,
                                              vmpk_module_t **out, vmpk_error_t *error) {
  (void)size, (void)allocator;
  vmpk_error_clear(error);
  if (!out || !bytes)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "bytes or out is NULL");
  *out = NULL;
  return vmpk_fail(error, VMPK_STATUS_UNSUPPORTED, "bundles hold code for Android, not for WebAssembly");
}

/* ---- Without waiting -------------------------------------------------------------------------------------------- */

/* An open that is under way. */
typedef struct request {
  vmpk_allocator_t allocator;
  vmpk_module_opened_fn done;
  void *context;
  const char *path;
} request_t;

/* The last thing done for a request. */
static void answer(request_t *request, vmpk_module_t *module, const vmpk_error_t *error) {
  vmpk_allocator_t allocator = request->allocator;
  vmpk_module_opened_fn done = request->done;
  void *context = request->context;
  vmpk_allocator_give(&allocator, request);
  done(context, module, error);
}

static void loaded(void *user_data, void *handle) {
  request_t *request = user_data;
  vmpk_module_t *module = NULL;
  vmpk_error_t error;
  vmpk_error_clear(&error);
  if (make_module(handle, request->path, &request->allocator, &module, &error) != VMPK_STATUS_OK)
    module = NULL;
  answer(request, module, &error);
}

static void failed(void *user_data) {
  request_t *request = user_data;
  vmpk_error_t error;
  fail_to_load(request->path, &error);
  answer(request, NULL, &error);
}

void vmpk_dynamic_module_open_async(const char *path, const vmpk_allocator_t *allocator, vmpk_module_opened_fn done,
                                    void *context) {
  vmpk_allocator_t memory = vmpk_allocator_or_default(allocator);
  request_t *request = vmpk_allocator_zeroed(&memory, sizeof *request);
  if (!request) {
    vmpk_error_t error;
    vmpk_fail(&error, VMPK_STATUS_OUT_OF_MEMORY, "no memory for opening '%.200s'", path);
    done(context, NULL, &error);
    return;
  }
  request->allocator = memory;
  request->done = done;
  request->context = context;
  request->path = path;
  emscripten_dlopen(path, RTLD_NOW | RTLD_LOCAL, request, loaded, failed);
}
