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
    pub fn number(&self) -> u64 {
        self.0.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// The digest of a plan: offsets and hand-overs.
    #[must_use]
    pub fn of_plan(plan: &Plan) -> Self {
        let mut words = Words::new("planlab plan 1");
        words.put(plan.offsets.len() as u64);
        plan.offsets.iter().for_each(|offset| words.put(offset.get()));
        for pair in &plan.in_place {
            words.put(u64::from(pair.input.get()));
            words.put(u64::from(pair.output.get()));
        }
        words.finish()
    }

    /// The first 12 hexadecimal digits: enough to distinguish files.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl Instance {
    /// A digest of everything that a planner can see; labels are not part of it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut words = Words::new("planlab instance 1");
        words.put(self.len() as u64);
        for buffer in self.buffers() {
            words.put(buffer.size.get());
            words.put(u64::from(buffer.live.start().get()));
            words.put(u64::from(buffer.live.end().get()));
            words.put(buffer.align.get());
            words.option(buffer.pin.map(|pin| pin.get()));
            words.put(u64::from(buffer.arena.get()));
            words.put(buffer.pauses.len() as u64);
            for pause in &buffer.pauses {
                words.put(u64::from(pause.steps.start().get()));
                words.put(u64::from(pause.steps.end().get()));
                words.option(pause.window.as_ref().map(|window| window.start.get()));
                words.option(pause.window.as_ref().map(|window| window.end.get()));
            }
        }
        words.put(self.in_place().len() as u64);
        for pair in self.in_place() {
            words.put(u64::from(pair.input.get()));
            words.put(u64::from(pair.output.get()));
        }
        words.put(self.arenas().len() as u64);
        for arena in self.arenas() {
            words.option(arena.capacity.map(|capacity| capacity.get()));
        }
        for pair in self.apart() {
            words.put(u64::from(pair.first.get()));
            words.put(u64::from(pair.second.get()));
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

    fn put(&mut self, word: u64) {
        self.block.extend_from_slice(&word.to_le_bytes());
        if self.block.len() >= Self::BLOCK {
            self.hasher.update(&self.block);
            self.block.clear();
        }
    }

    fn option(&mut self, word: Option<u64>) {
        self.put(u64::from(word.is_some()));
        self.put(word.unwrap_or(0));
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
