#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace tt::runtime {

// While this object exists, ATen calls of this thread go directly to the CPU kernels. They skip autograd and
// the Python modes that are active while torch.compile calls us (fake tensors, functionalization).
struct AtenOnly {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_python{c10::DispatchKeySet(
      {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::Functionalize})};
};

}  // namespace tt::runtime
