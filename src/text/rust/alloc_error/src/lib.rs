//! The hook that Rust calls where an allocation has failed, before it ends the process. Only an interface of std that is
//! not stable sets it. So this crate has nothing else in it: it alone may use such features (CMakeLists.txt).
#![feature(alloc_error_hook)]

use std::alloc::{Layout, set_alloc_error_hook};

/// Sets the hook for all threads. It may unwind; where it returns, the process ends. Thread-safe.
pub fn set_hook(hook: fn(Layout)) {
    set_alloc_error_hook(hook);
}
