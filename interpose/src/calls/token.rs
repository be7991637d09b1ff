//! A call of a program, in eight bytes.

/// A call as the history stores it, which the next round has to repeat. A request is identified by its size and
/// alignment, a free by the number of requests since its block's. So equal tokens in equal order mean the same calls,
/// wherever the blocks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

const REQUEST: u64 = 1 << 63;
const MOVE: u64 = 1 << 62;
const SIZE_BITS: u32 = 48;
const SIZE: u64 = (1 << SIZE_BITS) - 1;

/// The meaning of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// A request for a block.
    Request {
        /// Bytes.
        size: u64,
        /// Bytes; a power of two.
        align: u64,
    },
    /// Frees the block of the request this many requests ago; 1 is the last.
    Free(u64),
    /// Resizes the block of that request, which may move it.
    Move(u64),
}

impl Token {
    /// A request; `None` if its size is 0 or at least 2^48 bytes, or its alignment is no power of two.
    #[must_use]
    pub const fn from_request(size: u64, align: u64) -> Option<Self> {
        if size == 0 || size > SIZE || !align.is_power_of_two() || align > SIZE {
            return None;
        }
        Some(Self(REQUEST | ((align.trailing_zeros() as u64) << SIZE_BITS) | size))
    }

    /// A free of the block of the request `distance` requests ago.
    #[must_use]
    pub const fn from_free(distance: u64) -> Self {
        Self(distance & SIZE)
    }

    /// A resize of the block of that request.
    #[must_use]
    pub const fn from_resize(distance: u64) -> Self {
        Self(MOVE | (distance & SIZE))
    }

    /// The meaning of the token.
    #[must_use]
    pub const fn as_call(self) -> Call {
        let low = self.0 & SIZE;
        if self.is_request() {
            Call::Request { size: low, align: 1 << ((self.0 >> SIZE_BITS) & 0x3f) }
        } else if self.0 & MOVE != 0 {
            Call::Move(low)
        } else {
            Call::Free(low)
        }
    }

    /// Whether this is a request.
    #[must_use]
    pub const fn is_request(self) -> bool {
        self.0 & REQUEST != 0
    }

    /// The token as a word.
    pub(crate) const fn as_word(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_was_made_of() {
        for (size, align) in [(1, 1), (4096, 64), (SIZE, 1 << 21), (5, 1 << 47)] {
            let token = Token::from_request(size, align).expect("in range");
            assert_eq!(token.as_call(), Call::Request { size, align });
        }
        assert_eq!(Token::from_free(7).as_call(), Call::Free(7));
        assert_eq!(Token::from_resize(1).as_call(), Call::Move(1));
        assert_ne!(Token::from_free(1), Token::from_resize(1));
    }

    #[test]
    fn what_no_plan_serves_has_no_token() {
        for (size, align) in [(0, 16), (1 << 48, 16), (64, 0), (64, 48), (64, 1 << 48)] {
            assert_eq!(Token::from_request(size, align), None, "{size} {align}");
        }
    }
}
