//! Confines the process that gives pages back to what it needs: no files, no signals, and four system calls.
#![allow(unsafe_code, reason = "system calls")]

use std::ffi::{c_int, c_long};
use std::ptr;

use crate::preload::system::system_call;

/// Whether the program still has this memory; not after `exec`.
pub(super) fn shares_memory(program: usize, own: usize) -> bool {
    const MEMORY: usize = 1;
    // SAFETY: it only compares two processes.
    unsafe { system_call(libc::SYS_kcmp, [program, own, MEMORY, 0, 0]) == 0 }
}

/// Gives up all that the process does not need, and returns its number; `None` if that failed.
pub(super) fn confine(program: usize) -> Option<usize> {
    let filter = libc::sock_fprog {
        len: u16::try_from(FILTER.len()).unwrap_or(0),
        filter: FILTER.as_ptr().cast_mut(),
    };
    let prctl = |what: c_int, first: usize, second: usize| {
        // SAFETY: the options used here change this process alone; the filter outlives the call.
        unsafe { system_call(libc::SYS_prctl, [what.unsigned_abs() as usize, first, second, 0, 0]) == 0 }
    };
    // SAFETY: these concern the process's own numbers, files and folder.
    let (own, parent, is_apart) = unsafe {
        let own = system_call(libc::SYS_getpid, [0; 5]);
        // The process ends with the thread that started it; it may have ended already.
        let ends = prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL.unsigned_abs() as usize, 0);
        let parent = system_call(libc::SYS_getppid, [0; 5]);
        let closes = system_call(libc::SYS_close_range, [0, u32::MAX as usize, 0, 0, 0]) == 0;
        let root = c"/".as_ptr().expose_provenance();
        let leaves = system_call(libc::SYS_chdir, [root, 0, 0, 0, 0]) == 0;
        (usize::try_from(own).ok()?, usize::try_from(parent).ok()?, ends && closes && leaves)
    };
    let is_confined = is_apart
        && parent == program
        && shares_memory(program, own)
        && prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)
        && prctl(libc::PR_SET_SECCOMP, 2, ptr::from_ref(&filter).expose_provenance());
    is_confined.then_some(own)
}

#[expect(clippy::cast_possible_truncation, reason = "codes have 16 bits")]
const fn statement(code: u32, value: u32, unless: [u8; 2]) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: unless[0], jf: unless[1], k: value }
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUALS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
const ALLOW: libc::sock_filter = statement(RETURN, libc::SECCOMP_RET_ALLOW, [0, 0]);
/// `EPERM`.
const REFUSE: libc::sock_filter = statement(RETURN, libc::SECCOMP_RET_ERRNO | 1, [0, 0]);

/// Continues with the next statement if this is the system call, otherwise with the one after.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of calls are small")]
const fn is_call(number: c_long) -> libc::sock_filter {
    statement(EQUALS, number as u32, [0, 1])
}

/// The system calls that the process may make from then on, of the processor's own kind.
static FILTER: [libc::sock_filter; 13] = [
    statement(LOAD, 4, [0, 0]),
    statement(EQUALS, PROCESSOR, [1, 0]),
    REFUSE,
    statement(LOAD, 0, [0, 0]),
    is_call(libc::SYS_madvise),
    ALLOW,
    is_call(libc::SYS_clock_nanosleep),
    ALLOW,
    is_call(libc::SYS_kcmp),
    ALLOW,
    is_call(libc::SYS_exit),
    ALLOW,
    REFUSE,
];

/// The kernel's number of this processor's kind of system calls.
const PROCESSOR: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
