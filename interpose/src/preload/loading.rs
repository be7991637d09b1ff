//! Sets the library up when it is loaded, and takes it through forks.
#![allow(unsafe_code, reason = "a constructor, and handlers of forks and exits")]

use super::symbols::allocator;
#[cfg(target_arch = "x86_64")]
use super::symbols::system_call;
use super::system::{kernel, real, say};
use super::threads::{key, thread};
use super::{ending, record, settings};

/// Bytes of address space below which nothing is planned.
const LEAST_ADDRESS_SPACE: u64 = 64 << 20;

/// Runs before the program's own constructors and `main`. Until then the real allocator serves every request.
extern "C" fn load() {
    real::prepare();
    kernel::prepare();
    #[cfg(target_arch = "x86_64")]
    system_call::prepare();
    // A planner's panic only ends in "no plan" and prints no message; any other panic ends the process.
    std::panic::set_hook(Box::new(|panic| {
        if !key::hands_all_through() {
            say(&format!("planlab: {panic}\n"));
        }
    }));
    if has_sanitizer() {
        say("planlab: a sanitizer is in this process, so nothing is planned\n");
        return;
    }
    if is_address_space_scarce() || !thread::prepare() {
        return;
    }
    // SAFETY: the handlers live as long as the process, because the library is never unloaded.
    unsafe {
        libc::pthread_atfork(Some(record::lock), Some(record::unlock), Some(after_fork_in_child));
        libc::atexit(ending::at_exit);
    }
    let settings = settings::read();
    allocator::open(settings.machine.least_size);
}

/// Whether the process may map so little that the library would take what the program needs.
fn is_address_space_scarce() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it writes only the local that it receives.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) == 0 && limit.rlim_cur < LEAST_ADDRESS_SPACE }
}

/// Whether a sanitizer watches the process: it has an allocator of its own, and must see every call first.
fn has_sanitizer() -> bool {
    // SAFETY: the name ends with a zero.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__sanitizer_set_death_callback".as_ptr()) }.is_null()
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

extern "C" fn after_fork_in_child() {
    record::stop();
    record::unlock();
    #[cfg(feature = "cuda")]
    super::devices::after_fork();
    thread::after_fork();
}
