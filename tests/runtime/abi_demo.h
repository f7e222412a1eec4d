/* abi_demo.h - the demo module, linked in. */
#ifndef VMPK_TESTS_ABI_DEMO_H
#define VMPK_TESTS_ABI_DEMO_H

#include "vmpk/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions of the demo, by ordinal, with symbolic dims n and m:
 *   linear  x: f32[n, 4]                      ->  y: f32[n, 3] = max(x W + b, 0)   1 <= n <= 64; two dispatches
 *   join    a: i32[n], b: i32[n], c: i32[m]   ->  y: i32[2 n + m]                  0 <= n <= 1000, 0 <= m
 *   double  x: f64[2, 3]                      ->  y: f64[2, 3] = 2 x               static
 *   fail    x: i32[]                          ->  y: i32[]     fails with the status x in the dispatch "fail"
 * W = {{1, 2, -1}, {0.5, -2, 1}, {0, 1, 3}, {-1, 0.25, 2}}, b = {0.5, -1, 0}: exact in f32. */
enum { DEMO_LINEAR, DEMO_JOIN, DEMO_DOUBLE, DEMO_FAIL, DEMO_FUNCTIONS };
enum { DEMO_DISPATCHES = 5, DEMO_WEIGHTS_SIZE = 64 };

vmpk_status_t vmpk_demo_query(uint32_t host_abi_version, vmpk_entry_t *out);

#ifdef __cplusplus
}
#endif
#endif /* VMPK_TESTS_ABI_DEMO_H */
