#include "targets/ModuleData.h"

#include "vmpk/abi.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/Endian.h"

#include <cstddef>

using namespace llvm;

namespace vmpack::targets {

static constexpr StringLiteral tableName = "vmpk_table", weightsName = "vmpk_weights";

/// A page of every platform but the 16 KiB ones; small weights are not worth the padding.
static Align alignmentOf(uint64_t size) { return size >= 65536 ? Align(4096) : Align(VMPK_ALIGNMENT); }

static GlobalVariable *declareBytes(Module &module, StringRef name, uint64_t size) {
  auto *type = ArrayType::get(Type::getInt8Ty(module.getContext()), size);
  auto *variable = new GlobalVariable(module, type, /*isConstant=*/true, GlobalValue::ExternalLinkage,
                                      /*Initializer=*/nullptr, name);
  variable->setVisibility(GlobalValue::HiddenVisibility);
  variable->setDSOLocal(true);
  variable->setAlignment(Align(VMPK_ALIGNMENT));
  return variable;
}

/// Defines `const uint8_t *name(void)` as `return value`.
static void defineGetter(Module &module, StringRef name, Constant *value) {
  auto *pointer = PointerType::get(module.getContext(), 0);
  auto *function = cast<llvm::Function>(module.getOrInsertFunction(name, pointer).getCallee());
  IRBuilder<> builder(BasicBlock::Create(module.getContext(), "", function));
  builder.CreateRet(value);
}

void declareModuleData(Module &llvmModule, const SharedModule &module, WeightsPlacement weights) {
  auto *pointer = PointerType::get(llvmModule.getContext(), 0);
  auto *i64 = Type::getInt64Ty(llvmModule.getContext());
  defineGetter(llvmModule, "vmpk_module_table", declareBytes(llvmModule, tableName, module.table.size()));
  Constant *address = ConstantPointerNull::get(pointer);
  if (weights == WeightsPlacement::Embedded && !module.weights.empty())
    address = declareBytes(llvmModule, weightsName, module.weights.size());
  if (weights == WeightsPlacement::InMemory && !module.weights.empty())
    address =
        ConstantExpr::getIntToPtr(ConstantInt::get(i64, reinterpret_cast<uint64_t>(module.weights.data())), pointer);
  defineGetter(llvmModule, "vmpk_module_weights", address);
}

bool isModuleData(const GlobalValue &value) { return value.getName() == tableName || value.getName() == weightsName; }

static void defineBytes(Module &module, StringRef name, ArrayRef<uint8_t> bytes, StringRef section) {
  GlobalVariable *variable = module.getNamedGlobal(name);
  if (!variable)
    return;
  if (variable->use_empty())
    return variable->eraseFromParent();
  StringRef raw(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  variable->setInitializer(ConstantDataArray::getRaw(raw, bytes.size(), Type::getInt8Ty(module.getContext())));
  variable->setLinkage(GlobalValue::InternalLinkage);
  variable->setVisibility(GlobalValue::DefaultVisibility);
  variable->setAlignment(alignmentOf(bytes.size()));
  const Triple &triple = module.getTargetTriple();
  if (triple.isOSBinFormatELF() || triple.isOSBinFormatWasm())
    variable->setSection(section);
  else if (triple.isOSBinFormatMachO())
    variable->setSection(section == tableSection ? "__TEXT,__vmpk_table" : "__TEXT,__vmpk_weights");
}

void defineModuleData(Module &llvmModule, const SharedModule &module, WeightsPlacement weights) {
  defineBytes(llvmModule, tableName, module.table, tableSection);
  defineBytes(llvmModule, weightsName, module.weights, weightsSection);
}

Error patchStackSize(MutableArrayRef<char> file, const SharedModule &module, uint64_t stackSize) {
  StringRef table(reinterpret_cast<const char *>(module.table.data()), module.table.size());
  StringRef contents(file.data(), file.size());
  size_t position = contents.find(table);
  if (table.size() < sizeof(vmpk_table_header_t) || position == StringRef::npos)
    return createStringError("the object holds no module table");
  support::endian::write64le(&file[position + offsetof(vmpk_table_header_t, stack_size)], stackSize);
  return Error::success();
}

} // namespace vmpack::targets
