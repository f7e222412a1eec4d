// vmpk.mjs - runs a compiled model (a WebAssembly module made by vmpack) in Node 18 and later and in browsers.

/** The names of vmpk/status.h. */
export type Code =
  | 'INVALID_ARGUMENT' | 'OUT_OF_MEMORY' | 'VERSION_MISMATCH' | 'CORRUPT' | 'NOT_FOUND' | 'UNSUPPORTED' | 'IO'
  | 'OUT_OF_RANGE' | 'SHAPE_MISMATCH' | 'MISSING_IMPORT' | 'INTERNAL';

/** Every failure: the message names the tensor, dim, file or number that is wrong, and what it should be. */
export class VmpkError extends Error {
  constructor(code: Code, message: string, options?: { cause?: unknown });
  readonly code: Code;
  /** The code's number in vmpk/status.h. */
  readonly status: number;
}

export type DType =
  | 'f32' | 'f64' | 'f16' | 'bf16' | 'i8' | 'i16' | 'i32' | 'i64' | 'u8' | 'u16' | 'u32' | 'u64' | 'bool';

/** f16 and bf16 are their bits in a Uint16Array; bool is bytes, 0 or 1, in a Uint8Array. */
export type TensorData =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint16Array | Uint32Array | BigUint64Array;

/** A dense row-major tensor. */
export interface Tensor {
  data: TensorData;
  dims: number[];
}

/** What a call takes: an array alone when all dims are static. An f16 input may be a Float16Array, a u8 or bool input a
 * Uint8ClampedArray; bytes of a bool that are not 0 count as 1. */
export type Input = TensorData | Uint8ClampedArray | { data: TensorData | Uint8ClampedArray; dims?: readonly number[] };

export interface SymbolicDim {
  name: string;
  minimum: number;
  /** Inclusive; null: unbounded. */
  maximum: number | null;
}

export interface TensorSignature {
  name: string;
  dtype: DType;
  /** A size; the name of a symbolic dim; or, in outputs, null: computed from the symbolic dims. */
  dims: (number | string | null)[];
}

export interface FunctionSignature {
  name: string;
  dims: SymbolicDim[];
  inputs: TensorSignature[];
  outputs: TensorSignature[];
  /** Bytes; null: depends on the dims. */
  arenaSize: number | null;
}

export interface Signature {
  functions: FunctionSignature[];
}

export type Variant = 'baseline' | 'simd128' | 'relaxed-simd';

/** Bytes, or where they are: a URL (http, https, data, blob; in Node also file: and paths), or a Response or Blob. */
export type Source = string | URL | Response | Blob | ArrayBuffer | ArrayBufferView;

export interface LoadOptions {
  /** Which of the offered variants to take, instead of the best that this engine can run. */
  variant?: Variant;
  /** External weights. Streamed into the module's memory; their size and SHA-256 must be the module's. */
  weights?: Source | Promise<Source>;
  /** Options for fetch: credentials, integrity, signal, headers … */
  request?: RequestInit;
  /** false: do not check the SHA-256 of external weights (as crypto.subtle is missing outside secure contexts). */
  verify?: boolean;
}

export interface RunOptions {
  /** The public function: 'main', or the first where no function has that name, unless given. */
  function?: string;
  /** true: outputs are views of the module's memory, valid until the instance's next call of this function or until
   * the memory grows. Otherwise they are copies. */
  view?: boolean;
}

/** One caller's arena and tensors, in the memory of its module. Calls are synchronous and never overlap. */
export interface Instance {
  readonly module: Module | null;
  /** Runs a function in the calling thread. Inputs that were filled through inputView may be left out.
   * Throws VmpkError: INVALID_ARGUMENT (a missing input, a wrong type or length), NOT_FOUND (no such function or
   * input), SHAPE_MISMATCH, OUT_OF_RANGE (a symbolic dim's bounds), OUT_OF_MEMORY, or the module's own status. */
  runSync(inputs?: Record<string, Input>, options?: RunOptions): Record<string, Tensor>;
  /** The same, as a promise. */
  run(inputs?: Record<string, Input>, options?: RunOptions): Promise<Record<string, Tensor>>;
  /** The memory of an input, to be filled in place (no copy at the call). `dims` may be left out when they are static.
   * Once all inputs are known, the memory for the whole call is there and the next run does not grow it. A view ends
   * (length 0) when the memory grows, as by other shapes or instances: ask again, the contents are kept for the same
   * dims. */
  inputView(name: string, dims?: readonly number[], options?: { function?: string }): TensorData;
  /** Gives its memory back to the module. Further calls throw. */
  dispose(): void;
}

/** A loaded model: code and weights in one memory, which all its instances share. */
export interface Module {
  readonly name: string;
  /** The variant that was chosen; null when only one was offered. */
  readonly variant: Variant | null;
  /** SHA-256 of the shared module that every target was compiled from, in hex. */
  readonly digest: string;
  readonly signature: Signature;
  readonly weights: { size: number; digest: string; embedded: boolean };
  /** Bytes of stack a call needs at most; 0: not known. */
  readonly stackSize: number;
  readonly dispatches: { name: string; location: string; flops: number; bytes: number }[];
  readonly imports: { name: string; version: number; required: boolean }[];
  /** Grows by whole pages when an instance needs more than there is, and only then. */
  readonly memory: WebAssembly.Memory;
  /** A caller's own arena and tensors. */
  instantiate(): Promise<Instance>;
  /** Runs on an instance of the module's own. */
  run(inputs?: Record<string, Input>, options?: RunOptions): Promise<Record<string, Tensor>>;
  runSync(inputs?: Record<string, Input>, options?: RunOptions): Record<string, Tensor>;
  /** Lets go of the memory: instances of it can no longer be called. */
  dispose(): void;
}

/** Compiles and instantiates a model: from one source, or from the best of several variants that this engine can run.
 * URLs are compiled while they arrive when the server says application/wasm, else from their bytes.
 * Throws VmpkError: NOT_FOUND, IO (what the server or the system said), CORRUPT (not WebAssembly, a table or weights
 * that fail a check), UNSUPPORTED (no module of vmpack's, no variant for this engine, refused by the page's policy),
 * VERSION_MISMATCH, MISSING_IMPORT, OUT_OF_MEMORY. */
export function load(
  source: Source | WebAssembly.Module | Promise<Source | WebAssembly.Module> |
    Partial<Record<Variant, Source | WebAssembly.Module>>,
  options?: LoadOptions): Promise<Module>;

/** The variants that this engine can run, the best first. */
export function supportedVariants(): Variant[];

/** Reads the bytes of a module table, as untrusted input. Throws CORRUPT or VERSION_MISMATCH. */
export function readTable(bytes: ArrayBuffer | ArrayBufferView): {
  name: string;
  digest: string;
  weights: { size: number; digest: string };
  stackSize: number;
  functions: FunctionSignature[];
  dispatches: Module['dispatches'];
  imports: Module['imports'];
};

/** Byte offsets and sizes of the structs of vmpk/abi.h, as tests compare them with C's. */
export const layout: Readonly<Record<string, number | Readonly<Record<string, number>>>>;
