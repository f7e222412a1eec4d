//===- Metadata.h - what travels beside the code --------------------------------------------------------===//
//
// Attributes that the lowering leaves for the translation. On a function:
//   vmpk.entry = {name, inputs = [{name, dtype, dims}], outputs = [...], symbols = [{name, minimum, maximum}],
//                }      dims: integers as the ABI's dim entries
//   vmpk.arena = i64 bytes, or -1: measured
// On the module:
//   vmpk.dispatches = [{name, location, flops, bytes}]    by ordinal
//   vmpk.weights_size = i64
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_DIALECT_METADATA_H
#define VMPACK_DIALECT_METADATA_H

namespace vmpack::dialect {

inline constexpr char entryAttr[] = "vmpk.entry";
inline constexpr char dispatchesAttr[] = "vmpk.dispatches";
inline constexpr char dispatchFunctionAttr[] = "vmpk.dispatch";
/// How many of a dispatch function's parameters are bindings.
inline constexpr char bindingCountAttr[] = "vmpk.bindings";
/// On a schedule and on its measure function: the ordinal of the public function.
inline constexpr char scheduleAttr[] = "vmpk.schedule";
inline constexpr char measureAttr[] = "vmpk.measure";
/// On a dispatch: where in the arena its arguments lie.
inline constexpr char argumentsOffsetAttr[] = "vmpk.arguments";
inline constexpr char arenaSizeAttr[] = "vmpk.arena";
inline constexpr char weightsSizeAttr[] = "vmpk.weights_size";

} // namespace vmpack::dialect

#endif // VMPACK_DIALECT_METADATA_H
