//===- Pass.h - what a pass is -------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_PASS_H
#define TENON_PASSES_PASS_H

#include "ir/Op.h"
#include "ir/match/Rewriter.h"
#include "passes/Options.h"
#include "passes/Remarks.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace tenon::passes {

/// What a pass may use besides the module. Listens to the rewrites: counts them
/// against --rewrite-limit and turns them into remarks.
class PassContext final : public ir::RewriteListener {
public:
  /// \p explainTo gets what --explain and --rewrite-limit have to say.
  PassContext(const PassOptions &options, Remarks &remarks,
              llvm::raw_ostream &explainTo)
      : options(options), remarks(remarks), explainTo(explainTo) {}

  const PassOptions &options;
  Remarks &remarks;
  llvm::raw_ostream &explainTo;
  /// The flag of the pass that is running; set by the pass manager.
  llvm::StringRef passName;

  bool allow(llvm::StringRef rule, const ir::Op &root) override;
  void simplified(llvm::StringRef law, const ir::Location &loc) override;
  void applied(llvm::StringRef rule, const ir::Location &loc,
               llvm::ArrayRef<ir::Op *> ops) override;
  void missed(llvm::StringRef rule, const ir::Location &loc,
              llvm::StringRef reason) override;
  /// Whether --explain names the pass that runs.
  bool isExplained() const { return options.explain == passName; }
  /// Rewrites done so far in this run.
  uint64_t rewrites() const { return rewriteCount; }

private:
  uint64_t rewriteCount = 0;
};

/// A transformation of a module. Stateless between runs.
class Pass {
public:
  virtual ~Pass() = default;
  /// Returns whether anything changed, which the pass manager checks. An error
  /// is the user's (something that cannot be compiled), never a failed match.
  virtual llvm::Expected<bool> run(ir::Module &module,
                                   PassContext &context) = 0;
};

/// A pass that looks at one function at a time.
class FuncPass : public Pass {
public:
  llvm::Expected<bool> run(ir::Module &module, PassContext &context) final;
  virtual llvm::Expected<bool> runOnFunc(ir::Module &module, ir::Func &func,
                                         PassContext &context) = 0;
};

/// A pass that applies fusion rules: derive it and add the rules in order.
///
/// \code
///   class FuseGelu final : public RulePass {
///   public:
///     FuseGelu() { add<GeluErfRule>(); add<GeluTanhRule>(); }
///   };
///   std::unique_ptr<Pass> createFuseGelu() {
///     return std::make_unique<FuseGelu>();
///   }
/// \endcode
class RulePass : public FuncPass {
public:
  llvm::Expected<bool> runOnFunc(ir::Module &module, ir::Func &func,
                                 PassContext &context) override;

protected:
  template <class R, class... A> void add(A &&...arguments) {
    rules.push_back(std::make_unique<R>(std::forward<A>(arguments)...));
  }

private:
  std::vector<std::unique_ptr<ir::Rule>> rules;
};

/// What Passes.def says of a pass.
struct PassInfo {
  llvm::StringLiteral name; ///< the flag, "fuse-gelu"
  std::unique_ptr<Pass> (*create)();
  llvm::StringLiteral doc;
};
/// All passes in the order of Passes.def.
llvm::ArrayRef<PassInfo> allPasses();
/// The pass with flag \p name, or null.
const PassInfo *findPass(llvm::StringRef name);

// create<Class>(), defined in each pass's own file.
#define TN_PASS(Class, flag, doc) std::unique_ptr<Pass> create##Class();
#include "passes/Passes.def"

} // namespace tenon::passes

#endif // TENON_PASSES_PASS_H
