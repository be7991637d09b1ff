//! Content digests of instances and plans.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Instance, Plan};

/// A BLAKE3 digest, written as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of raw bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The first 64 bits as a number, for names.
    #[must_use]
    pub fn as_number(&self) -> u64 {
        self.0.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// The digest of a plan: offsets and hand-overs.
    #[must_use]
    pub fn of_plan(plan: &Plan) -> Self {
        let mut words = Words::new("planlab plan 1");
        words.add_word(plan.offsets.len() as u64);
        plan.offsets.iter().for_each(|offset| words.add_word(offset.get()));
        for pair in &plan.in_place {
            words.add_word(u64::from(pair.input.get()));
            words.add_word(u64::from(pair.output.get()));
        }
        words.finish()
    }

    /// The first 12 hexadecimal digits: enough to distinguish files.
    #[must_use]
    pub fn short_text(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl Instance {
    /// A digest of everything that a planner can see; labels are not part of it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut words = Words::new("planlab instance 1");
        words.add_word(self.len() as u64);
        for buffer in self.buffers() {
            words.add_word(buffer.size.get());
            words.add_word(u64::from(buffer.live.start().get()));
            words.add_word(u64::from(buffer.live.end().get()));
            words.add_word(buffer.align.get());
            words.add_option(buffer.pin.map(|pin| pin.get()));
            words.add_word(u64::from(buffer.arena.get()));
            words.add_word(buffer.pauses.len() as u64);
            for pause in &buffer.pauses {
                words.add_word(u64::from(pause.steps.start().get()));
                words.add_word(u64::from(pause.steps.end().get()));
                words.add_option(pause.window.as_ref().map(|window| window.start.get()));
                words.add_option(pause.window.as_ref().map(|window| window.end.get()));
            }
        }
        words.add_word(self.in_place().len() as u64);
        for pair in self.in_place() {
            words.add_word(u64::from(pair.input.get()));
            words.add_word(u64::from(pair.output.get()));
        }
        words.add_word(self.arenas().len() as u64);
        for arena in self.arenas() {
            words.add_option(arena.capacity.map(|capacity| capacity.get()));
        }
        for pair in self.keep_apart_pairs() {
            words.add_word(u64::from(pair.first.get()));
            words.add_word(u64::from(pair.second.get()));
        }
        words.finish()
    }
}

/// Hashes numbers in blocks; one call of the hasher per number would be slow.
struct Words {
    hasher: blake3::Hasher,
    block: Vec<u8>,
}

impl Words {
    const BLOCK: usize = 1 << 16;

    fn new(context: &str) -> Self {
        Self { hasher: blake3::Hasher::new_derive_key(context), block: Vec::with_capacity(Self::BLOCK + 8) }
    }

    fn add_word(&mut self, word: u64) {
        self.block.extend_from_slice(&word.to_le_bytes());
        if self.block.len() >= Self::BLOCK {
            self.hasher.update(&self.block);
            self.block.clear();
        }
    }

    fn add_option(&mut self, word: Option<u64>) {
        self.add_word(u64::from(word.is_some()));
        self.add_word(word.unwrap_or(0));
    }

    fn finish(mut self) -> Digest {
        self.hasher.update(&self.block);
        Digest(*self.hasher.finalize().as_bytes())
    }
}

/// A text that is not 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest of 64 hexadecimal digits")]
pub struct BadDigest(String);

impl TryFrom<String> for Digest {
    type Error = BadDigest;

    fn try_from(text: String) -> Result<Self, BadDigest> {
        match blake3::Hash::from_hex(&text) {
            Ok(hash) => Ok(Self(*hash.as_bytes())),
            Err(_) => Err(BadDigest(text)),
        }
    }
}

impl std::str::FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        Self::try_from(text.to_owned())
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        blake3::Hash::from_bytes(self.0).to_hex().fmt(f)
    }
}
