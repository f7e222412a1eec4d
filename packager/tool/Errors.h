//===- Errors.h - whose fault a failure is --------------------------------------------------------------===//
#ifndef VMPACK_TOOL_ERRORS_H
#define VMPACK_TOOL_ERRORS_H

#include "llvm/Support/Error.h"

#include <string>

namespace vmpack::tool {

/// A failure that the user cannot mend: vmpack's own. The program exits with 2.
class InternalError : public llvm::ErrorInfo<InternalError> {
public:
  static char ID;
  explicit InternalError(std::string message) : message(std::move(message)) {}
  void log(llvm::raw_ostream &out) const override { out << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string message;
};

/// A failure that the user can mend: the command line, a file, a model. The program exits with 1.
inline llvm::Error userError(const llvm::Twine &message) {
  return llvm::make_error<llvm::StringError>(message, std::make_error_code(std::errc::invalid_argument));
}

} // namespace vmpack::tool

#endif // VMPACK_TOOL_ERRORS_H
