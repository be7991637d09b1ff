//! The process around a thread's machine: segments, planning, other threads' frees, page faults.
#![allow(unsafe_code, reason = "resource usage, a clock, errno")]

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::check::Checker;
use super::segments::{self, Entry};
use super::settings::Settings;
use super::{idle, real, report, symbols, thread};
use crate::course::Segment;
use crate::machine::{Ground, Pages};
use crate::planning::{Job, Planning};
use crate::round::Round;
use crate::solve::{Solved, Unsolved};
use crate::tally::PlanTally;

/// A segment of the thread's plans, and which of its units have huge pages.
struct Held {
    entry: &'static Entry,
    huge: Vec<bool>,
}

pub(super) struct Process {
    /// The number of the thread's state.
    owner: usize,
    settings: &'static Settings,
    job: Option<Job>,
    segments: Vec<Held>,
    /// Whether a segment is reserved for a small plan that is being made.
    is_reserved: bool,
    /// The next block that another thread freed and that was not yet returned by `drain`; 0: none.
    freed: u64,
    /// Present if checks are wanted.
    pub(super) checker: Option<Checker>,
}

impl Process {
    pub(super) fn new(owner: usize, settings: &'static Settings) -> Self {
        let checker = settings.checks.then(Checker::default);
        Self { owner, settings, job: None, segments: Vec::new(), is_reserved: false, freed: 0, checker }
    }

    fn held(&mut self, segment: Segment) -> Option<&mut Held> {
        self.segments.iter_mut().find(|held| held.entry.segment() == segment)
    }

    /// Forgets the planning job: the process is a forked copy without the planning thread.
    pub(super) fn forget_job(&mut self) {
        // The job's lock may have been held.
        std::mem::forget(self.job.take());
        self.is_reserved = false;
    }

    fn unreserve(&mut self) {
        if std::mem::take(&mut self.is_reserved) {
            segments::unreserve_small();
        }
    }
}

impl Ground for Process {
    fn acquire(&mut self, bytes: u64) -> Option<Segment> {
        let least = self.settings.machine.least_size;
        let entry = keeping_errno(|| segments::acquire(self.owner, bytes, least))?;
        self.segments.push(Held { entry, huge: Vec::new() });
        self.unreserve();
        Some(entry.segment())
    }

    fn release(&mut self, segment: Segment) {
        if symbols::is_frozen() {
            return;
        }
        self.segments.retain(|held| held.entry.segment() != segment);
        keeping_errno(|| segments::release(segment));
    }

    fn rest(&mut self, segment: Segment) {
        if !symbols::is_frozen() {
            keeping_errno(|| segments::rest(segment));
        }
    }

    #[inline]
    fn claim(&mut self, segment: Segment) -> bool {
        self.held(segment).is_some_and(|held| held.entry.claim())
    }

    #[inline]
    fn unclaim(&mut self, segment: Segment) {
        if let Some(held) = self.held(segment) {
            held.entry.unclaim();
            idle::watch(segment.len);
        }
    }

    fn pages(&mut self, segment: Segment, bytes: u64) -> Option<Pages> {
        // Checks have written to all of them.
        if self.settings.checks {
            return None;
        }
        let pages = keeping_errno(|| segments::resident_pages(segment.base, bytes.min(segment.len)))?;
        let is_huge = self.settings.huge_pages;
        let held = self.held(segment)?;
        if held.entry.marks.take_replaced() {
            held.huge.clear();
        }
        if is_huge {
            keeping_errno(|| segments::use_huge_pages(segment, &pages, &mut held.huge));
        }
        Some(Pages::new(pages))
    }

    fn submit(&mut self, round: Round) -> bool {
        let is_small = self.segments.is_empty() && round.load() < u128::from(segments::SMALL);
        if is_small && !segments::reserve_small() {
            return false;
        }
        self.is_reserved = is_small;
        self.job = keeping_errno(|| Job::start(round, planning(self.settings)));
        if self.job.is_none() {
            self.unreserve();
        }
        self.job.is_some()
    }

    #[inline]
    fn collect(&mut self) -> Option<Result<Solved, Unsolved>> {
        let result = self.job.as_mut()?.collect()?;
        self.job = None;
        if result.is_err() {
            self.unreserve();
        }
        Some(result)
    }

    fn drain(&mut self) -> Option<u64> {
        if self.freed == 0 {
            self.freed =
                self.segments.iter().map(|held| held.entry.take_freed()).find(|&freed| freed != 0)?;
        }
        let address = self.freed;
        self.freed = segments::before(address);
        if let Some(checker) = &mut self.checker {
            checker.release(address);
        }
        Some(address)
    }

    fn faults(&mut self) -> u64 {
        keeping_errno(|| usage(libc::RUSAGE_THREAD)).map_or(0, |usage| usage.ru_minflt.cast_unsigned())
    }

    fn nanoseconds(&mut self) -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes only the local that it receives.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        (now.tv_sec.cast_unsigned()).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec.cast_unsigned())
    }

    fn adopted(&mut self, tally: &Arc<PlanTally>) {
        report::add_plan(tally);
    }

    fn settled(&mut self) {
        keeping_errno(real::trim);
    }
}

/// Runs work that the program did not ask for, and hides its effect on `errno`.
pub(super) fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the result points to a variable of the calling thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { errno.read() };
    let result = work();
    // SAFETY: as above.
    unsafe { errno.write(before) };
    result
}

/// How rounds are planned: by the launcher, or in a thread that is not watched itself.
pub(super) fn planning(settings: &'static Settings) -> Planning {
    Planning {
        least_load: settings.machine.least_load,
        patience: settings.patience,
        prepare: thread::hand_through_all,
        launcher: settings.launcher.as_deref(),
    }
}

/// The kernel's resource usage of the thread or the process.
pub(super) fn usage(who: libc::c_int) -> Option<libc::rusage> {
    let mut usage = MaybeUninit::zeroed();
    // SAFETY: it fills the whole structure; zeros are valid, too.
    unsafe { (libc::getrusage(who, usage.as_mut_ptr()) == 0).then(|| usage.assume_init()) }
}
