//! A call of a program, in eight bytes.

/// A call as the history keeps it: what the next round has to repeat.
///
/// A request is told by its size and alignment, a free by how many requests ago its block was asked for. So equal tokens
/// in equal order mean the same calls, wherever the blocks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

const REQUEST: u64 = 1 << 63;
const MOVE: u64 = 1 << 62;
const SIZE_BITS: u32 = 48;
const SIZE: u64 = (1 << SIZE_BITS) - 1;

/// What a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A request for a block.
    Request {
        /// Bytes.
        size: u64,
        /// Bytes; a power of two.
        align: u64,
    },
    /// The block of the request so many requests ago is freed; 1 is the last.
    Free(u64),
    /// That block is resized, and may have moved.
    Move(u64),
}

impl Token {
    /// A request; `None` where it has no size, 2^48 bytes or more, or an alignment that is no power of two.
    #[must_use]
    pub const fn request(size: u64, align: u64) -> Option<Self> {
        if size == 0 || size > SIZE || !align.is_power_of_two() || align > SIZE {
            return None;
        }
        Some(Self(REQUEST | ((align.trailing_zeros() as u64) << SIZE_BITS) | size))
    }

    /// A free of the block that was asked for so many requests ago.
    #[must_use]
    pub const fn free(distance: u64) -> Self {
        Self(distance & SIZE)
    }

    /// A change of that block's size.
    #[must_use]
    pub const fn moved(distance: u64) -> Self {
        Self(MOVE | (distance & SIZE))
    }

    /// What it says.
    #[must_use]
    pub const fn call(self) -> Call {
        let low = self.0 & SIZE;
        if self.is_request() {
            Call::Request { size: low, align: 1 << ((self.0 >> SIZE_BITS) & 0x3f) }
        } else if self.0 & MOVE != 0 {
            Call::Move(low)
        } else {
            Call::Free(low)
        }
    }

    /// Whether it is a request.
    #[must_use]
    pub const fn is_request(self) -> bool {
        self.0 & REQUEST != 0
    }

    /// The word that it is.
    pub(crate) const fn word(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_was_made_of() {
        for (size, align) in [(1, 1), (4096, 64), (SIZE, 1 << 21), (5, 1 << 47)] {
            let token = Token::request(size, align).expect("in range");
            assert_eq!(token.call(), Call::Request { size, align });
        }
        assert_eq!(Token::free(7).call(), Call::Free(7));
        assert_eq!(Token::moved(1).call(), Call::Move(1));
        assert_ne!(Token::free(1), Token::moved(1));
    }

    #[test]
    fn what_no_plan_serves_has_no_token() {
        for (size, align) in [(0, 16), (1 << 48, 16), (64, 0), (64, 48), (64, 1 << 48)] {
            assert_eq!(Token::request(size, align), None, "{size} {align}");
        }
    }
}
