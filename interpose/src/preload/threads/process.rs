//! The process around a thread's machine: segments, planning, other threads' frees, page faults.
#![allow(unsafe_code, reason = "a clock")]

use std::sync::Arc;

use super::{key, plans};
use crate::calls::Round;
use crate::planning::{Job, Solved, Unsolved};
use crate::plans::{Ground, Pages, Segment};
use crate::preload::segments::check::Checker;
use crate::preload::segments::entry::{self, Entry};
use crate::preload::segments::{idle, pages, table};
use crate::preload::settings::Settings;
use crate::preload::system::{is_frozen, keeping_errno, real, usage};
use crate::tally::PlanTally;

/// A segment of the thread's plans, and which of its units have huge pages.
struct Held {
    entry: &'static Entry,
    huge: Vec<bool>,
}

pub(crate) struct Process {
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
    pub(crate) checker: Option<Checker>,
}

impl Process {
    pub(crate) fn new(owner: usize, settings: &'static Settings) -> Self {
        let checker = settings.checks.then(Checker::default);
        Self { owner, settings, job: None, segments: Vec::new(), is_reserved: false, freed: 0, checker }
    }

    fn held(&mut self, segment: Segment) -> Option<&mut Held> {
        self.segments.iter_mut().find(|held| held.entry.segment() == segment)
    }

    /// Forgets the planning job: the process is a forked copy without the planning thread.
    pub(crate) fn forget_job(&mut self) {
        // The job's lock may have been held.
        std::mem::forget(self.job.take());
        self.is_reserved = false;
    }

    fn unreserve(&mut self) {
        if std::mem::take(&mut self.is_reserved) {
            table::unreserve_small();
        }
    }
}

impl Ground for Process {
    fn acquire(&mut self, bytes: u64) -> Option<Segment> {
        let least = self.settings.machine.least_size;
        let entry = keeping_errno(|| table::acquire(self.owner, bytes, least))?;
        self.segments.push(Held { entry, huge: Vec::new() });
        self.unreserve();
        Some(entry.segment())
    }

    fn release(&mut self, segment: Segment) {
        if is_frozen() {
            return;
        }
        self.segments.retain(|held| held.entry.segment() != segment);
        keeping_errno(|| table::release(segment));
    }

    fn discard_pages(&mut self, segment: Segment) {
        if !is_frozen() {
            keeping_errno(|| pages::rest(segment));
        }
    }

    #[inline]
    fn claim_segment(&mut self, segment: Segment) -> bool {
        self.held(segment).is_some_and(|held| held.entry.claim())
    }

    #[inline]
    fn unclaim_segment(&mut self, segment: Segment) {
        if let Some(held) = self.held(segment) {
            held.entry.unclaim();
            idle::watch(segment.len);
        }
    }

    fn resident_pages(&mut self, segment: Segment, bytes: u64) -> Option<Pages> {
        // Checks have written to all of them.
        if self.settings.checks {
            return None;
        }
        let pages = keeping_errno(|| pages::resident_pages(segment.base, bytes.min(segment.len)))?;
        let is_huge = self.settings.huge_pages;
        let held = self.held(segment)?;
        if held.entry.marks.take_replaced() {
            held.huge.clear();
        }
        if is_huge {
            keeping_errno(|| pages::use_huge_pages(segment, &pages, &mut held.huge));
        }
        Some(Pages::new(pages))
    }

    fn submit_round(&mut self, round: Round) -> bool {
        let is_small = self.segments.is_empty() && round.transient_load() < u128::from(table::SMALL);
        if is_small && !table::reserve_small() {
            return false;
        }
        self.is_reserved = is_small;
        self.job =
            keeping_errno(|| Job::start_planning(round, self.settings.planning(key::hand_through_all)));
        if self.job.is_none() {
            self.unreserve();
        }
        self.job.is_some()
    }

    #[inline]
    fn collect_result(&mut self) -> Option<Result<Solved, Unsolved>> {
        let result = self.job.as_mut()?.collect_result()?;
        self.job = None;
        if result.is_err() {
            self.unreserve();
        }
        Some(result)
    }

    fn next_foreign_free(&mut self) -> Option<u64> {
        if self.freed == 0 {
            self.freed =
                self.segments.iter().map(|held| held.entry.take_freed()).find(|&freed| freed != 0)?;
        }
        let address = self.freed;
        self.freed = entry::before(address);
        if let Some(checker) = &mut self.checker {
            checker.release(address);
        }
        Some(address)
    }

    fn page_faults(&mut self) -> u64 {
        keeping_errno(|| usage(libc::RUSAGE_THREAD)).map_or(0, |usage| usage.ru_minflt.cast_unsigned())
    }

    fn clock_nanoseconds(&mut self) -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes only the local that it receives.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        (now.tv_sec.cast_unsigned()).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec.cast_unsigned())
    }

    fn receive_tally(&mut self, tally: &Arc<PlanTally>) {
        plans::add(tally);
    }

    fn settle_rounds(&mut self) {
        keeping_errno(real::trim);
    }
}
