//! `syscall` of the C library, which is how libseccomp installs a filter. The system call may return twice (`vfork`) or
//! on another stack (`clone`), so nothing may be on the stack that was not there before: this jumps.
#![allow(unsafe_code, reason = "the interface of C")]
#![allow(unreachable_pub, reason = "symbols are seen by the linker, not by other modules")]

use std::arch::naked_asm;
use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::kernel::is_forbidding;
use crate::preload::ending;
use crate::preload::system::next::Lazy;
use crate::preload::system::refuse;

// SAFETY: it is a function; nobody calls it by this type.
static SYSCALL: Lazy<extern "C" fn()> = unsafe { Lazy::new(c"syscall") };
/// The next function of this name; null before it is known.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

pub(crate) fn prepare() {
    NEXT.store(SYSCALL.get().map_or(ptr::null_mut(), |at| at as *mut c_void), Ordering::Release);
}

/// Sees the arguments of the system calls `seccomp` and `prctl`, which read as much of them as is kept here.
#[expect(clippy::cast_possible_truncation, reason = "the kernel reads the low half, too")]
extern "C" fn observe(number: c_long, first: c_ulong, second: c_ulong, third: c_ulong) {
    let is_noticed = if number == libc::SYS_prctl {
        first as c_int == libc::PR_SET_SECCOMP && is_forbidding(second, third)
    } else {
        match first as c_uint {
            libc::SECCOMP_SET_MODE_STRICT => second as c_uint == 0 && third == 0,
            // Without a filter it only asks what the kernel knows.
            libc::SECCOMP_SET_MODE_FILTER => third != 0,
            _ => false,
        }
    };
    if is_noticed {
        ending::freeze();
    }
}

/// # Safety
///
/// As `syscall` of the C library, whose arguments it passes on.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    naked_asm!(
        "cmp rdi, {seccomp}",
        "je 3f",
        "cmp rdi, {prctl}",
        "je 3f",
        "2:",
        "mov rax, qword ptr [rip + {next}]",
        "test rax, rax",
        "jz 4f",
        "jmp rax",
        "3:",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "sub rsp, 8",
        "call {observe}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp 2b",
        // Before the library is set up, the kernel is called at once.
        "4:",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 5f",
        "ret",
        "5:",
        "neg eax",
        "mov edi, eax",
        "jmp {refuse}",
        seccomp = const libc::SYS_seccomp,
        prctl = const libc::SYS_prctl,
        next = sym NEXT,
        observe = sym observe,
        refuse = sym refuse,
    )
}
