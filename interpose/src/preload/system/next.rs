//! Functions of the C library that stand behind the symbols of this one.
#![allow(unsafe_code, reason = "foreign functions")]

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::mem::transmute_copy;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

static IS_RESOLVING: AtomicBool = AtomicBool::new(false);

/// A function of C, of type `F`, that is looked up at its first call.
pub(crate) struct Lazy<F> {
    name: &'static CStr,
    at: AtomicPtr<c_void>,
    of: PhantomData<F>,
}

impl<F: Copy> Lazy<F> {
    /// # Safety
    ///
    /// The function of this name has the type `F`, which is that of a pointer to a function.
    pub(crate) const unsafe fn new(name: &'static CStr) -> Self {
        Self { name, at: AtomicPtr::new(ptr::null_mut()), of: PhantomData }
    }

    /// The function; `None` while it is being looked up, and if there is no such function.
    #[inline]
    pub(crate) fn get(&self) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let known = self.at.load(Ordering::Relaxed);
        let at = if known.is_null() { self.look_up()? } else { known };
        // SAFETY: the declaration of the symbol gives its function this type.
        Some(unsafe { transmute_copy(&at) })
    }

    #[cold]
    fn look_up(&self) -> Option<*mut c_void> {
        if IS_RESOLVING.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: the name ends with a zero.
        let at = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.at.store(at, Ordering::Relaxed);
        IS_RESOLVING.store(false, Ordering::Release);
        (!at.is_null()).then_some(at)
    }
}

/// Functions of C with their names and types, and one that looks all of them up while there is only one thread.
macro_rules! lookups {
    ($prepare:ident: $($function:ident = $name:literal: $type:ty;)*) => {
        // SAFETY: the functions of these names have these types.
        $(pub(crate) static $function: Lazy<$type> = unsafe { Lazy::new($name) };)*

        /// Looks up all functions while there is only one thread.
        pub(crate) fn $prepare() {
            $(let _ = $function.get();)*
        }
    };
}
pub(crate) use lookups;
