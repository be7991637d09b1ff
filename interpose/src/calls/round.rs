//! A round: the repeating calls, cut where the fewest bytes are live, and those of its requests that a plan can serve.
//!
//! ```text
//!   live   |      __            __
//!   bytes  |   __|  |_       __|  |_          the cut: the lowest point of a period
//!          |__|       |_____|       |_____
//!             ^             ^
//!             a round       the next
//! ```
//!
//! Requests that are freed within the round are *transient*: a plan serves them. The real allocator serves blocks that
//! live across the cut or are resized.

use planlab_dsa::{Alignment, Buffer, Bytes, Instance, InstanceError, LiveRange};

use super::token::{Call, Token};

/// The least alignment of every planned block, in bytes: a cache line.
pub(crate) const LEAST_ALIGN: u64 = 64;

/// A request of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The token that a request must match.
    pub token: Token,
    /// Bytes.
    pub size: u64,
    /// Bytes; a power of two.
    pub align: u64,
    /// The calls of the round between which it is live; `None` if no plan serves it.
    pub live: Option<LiveRange>,
}

/// The calls of a round, and its requests in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    tokens: Vec<Token>,
    requests: Vec<Request>,
}

impl Round {
    /// The round whose period these calls are; they may begin anywhere in it. `None` if they contain no request.
    #[must_use]
    pub fn of_period(period: &[Token]) -> Option<Self> {
        let cut = best_cut(period)?;
        Self::of_calls(period[cut..].iter().chain(&period[..cut]).copied().collect())
    }

    /// The round that consists of these calls. `None` if it is empty, too long or begins with a free.
    #[must_use]
    pub fn of_calls(tokens: Vec<Token>) -> Option<Self> {
        if !tokens.first()?.is_request() || u32::try_from(tokens.len()).is_err() {
            return None;
        }
        let requests = collect_requests(&tokens);
        Some(Self { tokens, requests })
    }

    /// The round's calls.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The round's requests.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Whether calls are one period of this round, from any call on, or an inner loop of it. An inner loop begins
    /// where more is live than between rounds; a part that begins elsewhere is a round by itself.
    #[must_use]
    pub fn holds_calls(&self, calls: &[Token]) -> bool {
        let Some(first) = calls.first() else { return true };
        let count = self.tokens.len();
        if calls.len() > count {
            return false;
        }
        let is_there = |&at: &usize| {
            let (head, tail) = calls.split_at(calls.len().min(count - at));
            self.tokens[at..].starts_with(head) && self.tokens.starts_with(tail)
        };
        let at = (0..count).filter(|&at| self.tokens[at] == *first).find(is_there);
        at.is_some_and(|at| calls.len() == count || live_levels(&self.tokens)[at] > 0)
    }

    /// The most bytes of transient requests that are live at once.
    pub(crate) fn transient_load(&self) -> u128 {
        let transient =
            self.requests.iter().filter_map(|request| Some((request.live?, i128::from(request.size))));
        let mut changes: Vec<(u32, i128)> = transient
            .flat_map(|(live, size)| [(live.start().get(), size), (live.end().get(), -size)])
            .collect();
        changes.sort_unstable();
        let mut live = 0;
        let levels = changes.into_iter().map(|(_, change)| {
            live += change;
            live
        });
        levels.max().unwrap_or(0).unsigned_abs()
    }

    /// The same round with the requests of these indices left to the real allocator.
    pub(crate) fn without_requests(&self, requests: &[usize]) -> Self {
        let mut less = self.clone();
        requests.iter().for_each(|&request| less.requests[request].live = None);
        less
    }

    /// The placement problem of the transient requests, and their indices.
    ///
    /// # Errors
    ///
    /// If the sizes together do not fit 64 bits.
    pub(crate) fn placement_problem(&self) -> Result<(Instance, Vec<usize>), InstanceError> {
        let (mut buffers, mut numbers) = (Vec::new(), Vec::new());
        for (number, request) in self.requests.iter().enumerate() {
            let Some(live) = request.live else { continue };
            let align = Alignment::new(request.align.max(LEAST_ALIGN)).unwrap_or_default();
            let size = Bytes::new(request.size.next_multiple_of(LEAST_ALIGN));
            buffers.push(Buffer::new(size, live).with_align(align));
            numbers.push(number);
        }
        Ok((Instance::from_buffers(buffers)?, numbers))
    }
}

/// The requests of calls; a request has a live range if it begins and ends within them.
fn collect_requests(tokens: &[Token]) -> Vec<Request> {
    let mut requests: Vec<Request> = Vec::new();
    let mut begins: Vec<u32> = Vec::new();
    let mut is_moved: Vec<bool> = Vec::new();
    for (at, &token) in (0_u32..).zip(tokens) {
        let of = |distance: u64, count: usize| {
            usize::try_from(distance).ok().and_then(|distance| count.checked_sub(distance))
        };
        match token.as_call() {
            Call::Request { size, align } => {
                requests.push(Request { token, size, align, live: None });
                begins.push(at);
                is_moved.push(false);
            }
            Call::Move(distance) => {
                of(distance, requests.len()).into_iter().for_each(|number| is_moved[number] = true);
            }
            Call::Free(distance) => {
                if let Some(number) = of(distance, requests.len()).filter(|&number| !is_moved[number]) {
                    requests[number].live = LiveRange::new(begins[number], at).ok();
                }
            }
        }
    }
    requests
}

/// The request before which the fewest bytes are live; of several such places, the one with the rarest request.
fn best_cut(period: &[Token]) -> Option<usize> {
    let levels = live_levels(period);
    let before_requests =
        || levels.iter().zip(period).enumerate().filter(|(_, (_, token))| token.is_request());
    let lowest = before_requests().map(|(_, (level, _))| *level).min()?;
    let mut sorted: Vec<Token> = period.iter().copied().filter(|token| token.is_request()).collect();
    sorted.sort_unstable();
    let rarity = |token: Token| {
        sorted.partition_point(|&other| other <= token) - sorted.partition_point(|&other| other < token)
    };
    before_requests()
        .filter(|(_, (level, _))| **level == lowest)
        .min_by_key(|(at, (_, token))| (rarity(**token), *at))
        .map(|(at, _)| at)
}

/// Bytes live before each call, relative to the first call; a block from before the period counts with the size of its
/// counterpart in the period.
fn live_levels(period: &[Token]) -> Vec<i128> {
    let size_of = |token: &Token| match token.as_call() {
        Call::Request { size, .. } => Some(size),
        _ => None,
    };
    let sizes: Vec<u64> = period.iter().filter_map(size_of).collect();
    let count = sizes.len() as u64;
    let (mut level, mut made) = (0_i128, 0_u64);
    let mut levels = Vec::with_capacity(period.len());
    for token in period {
        levels.push(level);
        match token.as_call() {
            Call::Request { size, .. } => {
                level += i128::from(size);
                made += 1;
            }
            Call::Free(distance) if count > 0 => {
                let number = (made + count - distance % count) % count;
                level -= i128::from(usize::try_from(number).map_or(0, |number| sizes[number]));
            }
            _ => {}
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(size: u64) -> Token {
        Token::from_request(size, 16).expect("in range")
    }

    /// a[x b[y c] d]: each is a request with its free.
    fn nested() -> Vec<Token> {
        vec![
            request(100),
            request(64),
            Token::from_free(1),
            request(200),
            Token::from_free(3),
            request(300),
            Token::from_free(2),
            Token::from_free(1),
        ]
    }

    #[test]
    fn a_round_begins_where_nothing_transient_is_live() {
        for rotation in 0..nested().len() {
            let mut period = nested();
            period.rotate_left(rotation);
            let round = Round::of_period(&period).expect("a round");
            assert_eq!(round.tokens(), nested(), "rotated by {rotation}");
            assert!(round.holds_calls(&period));
            assert!(round.requests().iter().all(|request| request.live.is_some()));
        }
    }

    #[test]
    fn what_lives_across_the_cut_is_not_transient() {
        // The result of a round is freed after the next round's result was requested.
        let period = [request(64), request(1000), Token::from_free(2), Token::from_free(3)];
        let round = Round::of_period(&period).expect("a round");
        let live: Vec<bool> = round.requests().iter().map(|request| request.live.is_some()).collect();
        assert_eq!(round.requests().iter().map(|r| r.size).collect::<Vec<_>>(), [64, 1000]);
        assert_eq!(live, [true, false]);
    }

    #[test]
    fn what_is_resized_is_not_transient() {
        let calls =
            vec![request(64), Token::from_resize(1), request(128), Token::from_free(2), Token::from_free(1)];
        let round = Round::of_calls(calls).expect("a round");
        assert_eq!(round.requests()[0].live, None);
        assert!(round.requests()[1].live.is_some());
        assert_eq!(round.transient_load(), 128);
        let (instance, numbers) = round.placement_problem().expect("small");
        assert_eq!((instance.len(), numbers), (1, vec![1]));
    }

    #[test]
    fn frees_alone_are_no_round() {
        assert_eq!(Round::of_period(&[Token::from_free(1), Token::from_free(2)]), None);
        assert_eq!(Round::of_calls(vec![Token::from_free(1)]), None);
        let round = Round::of_calls(nested()).expect("a round");
        assert!(round.holds_calls(&nested()[1..4]));
        assert!(round.holds_calls(&[Token::from_free(1), request(100), request(64)]));
        assert!(!round.holds_calls(&[request(64), Token::from_free(2)]));
        assert!(!round.holds_calls(&[nested(), nested()].concat()));
    }
}
