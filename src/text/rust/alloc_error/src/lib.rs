//! The hook that Rust calls after a failed allocation, before it ends the process. Only an unstable interface of std
//! sets it. So the hook has a crate of its own, the only one that may use unstable features (CMakeLists.txt).
#![feature(alloc_error_hook)]

use std::alloc::{Layout, set_alloc_error_hook};

/// Sets the hook for all threads. The hook may unwind; if it returns, the process ends. Thread-safe.
pub fn set_hook(hook: fn(Layout)) {
    set_alloc_error_hook(hook);
}
