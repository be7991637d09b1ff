//! A thread's requests and frees, in order.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxHashMap;

use super::token::Token;

/// The most calls that are kept; a longer round is not found. 8 bytes each.
const MOST_CALLS: usize = 1 << 19;
/// The most live blocks that are kept; if there are more (because other threads free them, say), all are forgotten.
const MOST_LIVE: usize = 1 << 18;

/// Each thread may keep this many calls and live blocks. More only while all threads together keep less than
/// [`MOST_EXTRA`] bytes of these: many threads that never repeat themselves would hold much memory.
const USUAL: usize = 1 << 10;
const MOST_EXTRA: usize = 8 << 20;

/// Changes the bytes that all threads keep beyond the usual; each test has its own. Returns the bytes before.
fn change_extra(change: impl FnOnce(&AtomicUsize) -> usize) -> usize {
    #[cfg(not(test))]
    {
        static EXTRA: AtomicUsize = AtomicUsize::new(0);
        change(&EXTRA)
    }
    #[cfg(test)]
    {
        thread_local! { static EXTRA: AtomicUsize = const { AtomicUsize::new(0) }; }
        EXTRA.with(change)
    }
}

/// What a thread keeps beyond the usual, in bytes.
#[derive(Debug, Default)]
struct Extra(usize);

impl Extra {
    /// Takes more bytes, unless that is too much; whether it did.
    fn take_bytes(&mut self, bytes: usize) -> bool {
        let is_taken = change_extra(|extra| extra.fetch_add(bytes, Ordering::Relaxed)) + bytes <= MOST_EXTRA;
        if is_taken {
            self.0 += bytes;
        } else {
            change_extra(|extra| extra.fetch_sub(bytes, Ordering::Relaxed));
        }
        is_taken
    }
}

impl Drop for Extra {
    fn drop(&mut self) {
        change_extra(|extra| extra.fetch_sub(self.0, Ordering::Relaxed));
    }
}

/// The latest calls of a thread, and its blocks that no plan serves.
#[derive(Debug, Default)]
pub(crate) struct History {
    tokens: Vec<Token>,
    extra: Extra,
    /// The number of calls before the first of `tokens`.
    forgotten: u64,
    /// The number of requests so far, which is the number of the next one.
    requests: u64,
    /// The number of the request of each live block, by address.
    live: FxHashMap<u64, u64>,
}

impl History {
    /// Records a request; returns its number.
    pub(crate) fn record_request(&mut self, token: Token) -> u64 {
        self.push_token(token);
        self.requests += 1;
        self.requests - 1
    }

    /// Records the block of the request with this number.
    pub(crate) fn record_placement(&mut self, number: u64, address: u64) {
        let entry = size_of::<(u64, u64)>();
        let len = self.live.len();
        let is_full = len >= MOST_LIVE
            || len >= USUAL && len == self.live.capacity() && !self.extra.take_bytes(len * entry);
        if is_full {
            self.live.clear();
        }
        // If a block was recorded here, another thread has freed it.
        self.live.insert(address, number);
    }

    /// Records the free of a block; whether its request is known.
    pub(crate) fn record_free(&mut self, address: u64) -> bool {
        let number = self.live.remove(&address);
        number.map(|number| self.freed_number(number)).is_some()
    }

    /// Records the free of the block of the request with this number.
    pub(crate) fn freed_number(&mut self, number: u64) {
        self.push_token(Token::from_free(self.requests - number));
    }

    /// Records that a block will be resized; returns the number of its request, if known.
    pub(crate) fn record_resize(&mut self, address: u64) -> Option<u64> {
        let number = self.live.remove(&address)?;
        self.push_token(Token::from_resize(self.requests - number));
        Some(number)
    }

    fn push_token(&mut self, token: Token) {
        let len = self.tokens.len();
        let is_full = len == self.tokens.capacity() && !self.may_grow();
        if len >= MOST_CALLS || is_full {
            let half = self.tokens.len() / 2;
            self.tokens.copy_within(half.., 0);
            self.tokens.truncate(self.tokens.len() - half);
            self.forgotten += half as u64;
        }
        self.tokens.push(token);
    }

    /// Whether there is room for twice as many calls.
    #[cold]
    fn may_grow(&mut self) -> bool {
        let len = self.tokens.len();
        len < USUAL || self.extra.take_bytes(len * size_of::<Token>())
    }

    /// Drops the latest calls, which repeat those before them. Requests keep their numbers.
    pub(crate) fn drop_latest(&mut self, calls: u64) {
        let calls = usize::try_from(calls).unwrap_or(usize::MAX);
        self.tokens.truncate(self.tokens.len().saturating_sub(calls));
    }

    /// The number of live blocks of the real allocator, as far as known.
    pub(crate) fn live_blocks(&self) -> usize {
        self.live.len()
    }

    /// The number of calls that are kept.
    pub(crate) fn known_calls(&self) -> usize {
        self.tokens.len()
    }

    /// The number of all calls so far, without dropped repetitions.
    pub(crate) fn len(&self) -> u64 {
        self.forgotten + self.tokens.len() as u64
    }

    /// The call with a number, from 0, if it is still kept.
    pub(crate) fn get(&self, at: u64) -> Option<Token> {
        let index = usize::try_from(at.checked_sub(self.forgotten)?).ok()?;
        self.tokens.get(index).copied()
    }

    /// The calls from a number on, if they are still kept.
    pub(crate) fn calls_since(&self, at: u64) -> Option<&[Token]> {
        let index = usize::try_from(at.checked_sub(self.forgotten)?).ok()?;
        self.tokens.get(index..)
    }

    /// Forgets everything but the numbering, and frees its memory.
    pub(crate) fn clear(&mut self) {
        self.forgotten = self.len();
        (self.tokens, self.live, self.extra) = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(size: u64) -> Token {
        Token::from_request(size, 16).expect("in range")
    }

    #[test]
    fn a_free_tells_how_many_requests_ago_its_block_was_asked_for() {
        let mut history = History::default();
        for (size, address) in [(64, 1000), (32, 2000)] {
            let number = history.record_request(request(size));
            history.record_placement(number, address);
        }
        assert!(history.record_free(1000));
        assert!(!history.record_free(1000) && !history.record_free(7));
        assert_eq!(history.record_resize(2000), Some(1));
        assert_eq!(
            history.calls_since(0),
            Some(&[request(64), request(32), Token::from_free(2), Token::from_resize(1)][..])
        );
        assert_eq!(history.calls_since(5), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many calls for an interpreter")]
    fn old_calls_are_forgotten_in_halves() {
        let mut history = History::default();
        for size in 0..=MOST_CALLS as u64 {
            history.record_request(request(size + 1));
        }
        assert_eq!(history.len(), MOST_CALLS as u64 + 1);
        assert_eq!(history.get(0), None);
        assert_eq!(history.get(history.len() - 1), Some(request(MOST_CALLS as u64 + 1)));
        assert_eq!(history.calls_since(history.len() - 2).map(<[Token]>::len), Some(2));
    }
}
