#!/usr/bin/python3
"""Fits the polynomials of math_f32.c and math_f64.c: fit.py [NAME...] (needs python3-mpmath).

Each row is a function of z on an interval, a degree and a weight; the Remez exchange finds the polynomial whose weighted
error is smallest, and prints it lowest power first, each coefficient rounded to the format it is used in, with the
largest weighted error after rounding as a power of two.
"""
import sys
from mpmath import mp, mpf, mpc, matrix, lu_solve, exp, log, sin, cos, atan, asin, erf, erfc, sinh, tanh, sqrt, cos, pi

mp.prec = 240


def series(f, z, small, terms):
    """f(z), or its series near zero, where the closed form would cancel."""
    if abs(z) < mpf(2) ** -24:
        return sum(c * z**i for i, c in enumerate(terms))
    return f(z)


def odd(f, first):
    """(f(s) / s - 1) / z with z = s * s."""
    return lambda z: (f(sqrt(z)) / sqrt(z) - 1) / z if z > mpf(2) ** -60 else mpf(first)


SQ = sqrt(mpf(2))
LN2 = log(mpf(2))
ROWS = {
    # name: (function, low, high, degree, weight, mantissa bits)
    "exp_f64": (lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > mpf(2)**-40 else mpf(1) / 2, -0.34668, 0.34668, 10,
                lambda r: r**2 / exp(r), 53),
    "exp_f32": (lambda r: (exp(r) - 1 - r) / r**2 if abs(r) > mpf(2)**-40 else mpf(1) / 2, -0.3467, 0.3467, 4,
                lambda r: r**2 / exp(r), 24),
    "exp2_f32": (lambda r: (2**r - 1) / r if abs(r) > mpf(2)**-60 else LN2, -0.5, 0.5, 6, lambda r: r / 2**r, 24),
    "log_f64": (lambda z: (2 * mp.atanh(sqrt(z)) / sqrt(z) - 2) / z if z > mpf(2)**-60 else mpf(2) / 3, 0, 0.02944, 6,
                lambda z: z / 2, 53),
    "logdd_f64": (lambda z: ((2 * mp.atanh(sqrt(z)) / sqrt(z) - 2) / z - mpf(2) / 3) / z if z > mpf(2)**-50
                  else mpf(2) / 5, 0, 0.02944, 7, lambda z: z * z / 2, 53),
    "log_f32": (lambda f: (log(1 + f) - f + f * f / 2) / f**3 if abs(f) > mpf(2)**-40 else mpf(1) / 3,
                1 / SQ - 1, SQ - 1, 8, lambda f: f**3 / log(1 + f) if f else mpf(0), 24),
    "sin_f64": (odd(sin, -mpf(1) / 6), 0, 0.6169, 6, lambda z: z, 53),
    "cos_f64": (lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2 if z > mpf(2)**-40 else mpf(1) / 24, 0, 0.6169, 6,
                lambda z: z**2, 53),
    "atan_f64": (odd(atan, -mpf(1) / 3), 0, 0.17158, 11, lambda z: z, 53),
    "asin_f64": (odd(asin, mpf(1) / 6), 0, 0.25, 12, lambda z: z, 53),
    "sinh_f64": (odd(sinh, mpf(1) / 6), 0, 1, 7, lambda z: z, 53),
    "tanh_f32": (odd(tanh, -mpf(1) / 3), 0, 0.36, 5, lambda z: z, 24),
    "erf_f64": (lambda z: erf(sqrt(z)) / sqrt(z) if z > mpf(2)**-80 else 2 / sqrt(pi), 0, 1, 13, lambda z: mpf(1), 53),
    "erf_f32": (lambda z: erf(sqrt(z)) / sqrt(z) - 1 if z > mpf(2)**-80 else 2 / sqrt(pi) - 1, 0, 0.8464, 6,
                lambda z: 1, 24),
    # -log(erfc(x)) on [0.92, 4]: an error of the exponent matters as erfc / erf.
    "erfc_f32": (lambda x: -log(erfc(x)) / x, 0.9, 4.0, 8, lambda x: x * erfc(x) / erf(x), 24),
    # log(exp(x * x) * erfc(x) / t) with t = 1 / (1 + x / 2), as a polynomial of 2 t - 1.
    "erfcx_f64": (lambda u: None, -0.875, 0.8, 24, lambda u: mpf(1), 53),
    "cbrt_f64": (lambda m: mp.cbrt(m), 1, 8, 4, lambda m: 1 / mp.cbrt(m), 53),
}


def erfcx(u):
    t = (u + 1) / 2
    x = 2 * (1 / t - 1)
    return x * x + log(erfc(x)) - log(t)


ROWS["erfcx_f64"] = (erfcx,) + ROWS["erfcx_f64"][1:]


def evaluate(c, z):
    y = mpf(0)
    for a in reversed(c):
        y = y * z + a
    return y


def remez(f, low, high, degree, weight):
    n = degree + 1
    low, high = mpf(low), mpf(high)
    points = [(low + high) / 2 - (high - low) / 2 * cos(pi * (2 * i + 1) / (2 * n + 2)) for i in range(n + 1)]
    grid = [(low + high) / 2 - (high - low) / 2 * cos(pi * i / 600) for i in range(601)]
    values = [f(z) for z in grid]
    for _ in range(12):
        a = matrix(n + 1, n + 1)
        b = matrix(n + 1, 1)
        for i, z in enumerate(points):
            w = weight(z)
            for j in range(n):
                a[i, j] = w * z**j
            a[i, n] = (-1) ** i
            b[i] = w * f(z)
        c = list(lu_solve(a, b))[:n]
        error = [weight(z) * (evaluate(c, z) - v) for z, v in zip(grid, values)]
        # One extremum for each run of equal sign.
        runs = []
        for z, e in zip(grid, error):
            if runs and (e > 0) == (runs[-1][1] > 0):
                if abs(e) > abs(runs[-1][1]):
                    runs[-1] = (z, e)
            elif e:
                runs.append((z, e))
        if len(runs) < n + 1:
            break
        while len(runs) > n + 1:
            runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
        points = [z for z, _ in runs]
        sizes = [abs(e) for _, e in runs]
        if max(sizes) < min(sizes) * mpf("1.02"):
            break
    return c, grid, values


def main(names):
    for name in names or ROWS:
        f, low, high, degree, weight, bits = ROWS[name]
        c, grid, values = remez(f, low, high, degree, weight)
        rounded = [mpf(float(a)) if bits == 53 else mp.mpf(round_to(a, bits)) for a in c]
        worst = max(abs(weight(z) * (evaluate(rounded, z) - v)) for z, v in zip(grid, values))
        print(f"{name}: 2^{float(mp.log(worst, 2)):.1f}")
        suffix = "f" if bits == 24 else ""
        print("    " + ", ".join(float(a).hex() + suffix for a in rounded))


def round_to(a, bits):
    save = mp.prec
    mp.prec = bits
    a = +a
    mp.prec = save
    return a


if __name__ == "__main__":
    main(sys.argv[1:])
