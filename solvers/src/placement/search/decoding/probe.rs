//! Gives the benchmark `decoder` access to the decoder.

use std::sync::Arc;

use planlab_dsa::Instance;

use super::decoder::{Change, Decoder};
use super::model::Model;
use crate::placement::Order;

/// Random exchanges in the order of an instance, decoded incrementally, as searches do, or from scratch.
#[derive(Clone, Debug)]
pub struct DecoderProbe {
    decoder: Decoder,
    state: u64,
}

impl DecoderProbe {
    /// First fit in the order of size. `None` if no plan without hand-overs exists.
    #[must_use]
    pub fn new(instance: &Instance) -> Option<Self> {
        let model = Model::new(instance, &mut |_| Ok(())).ok()??;
        let order: Vec<u32> = Order::Size.sort_buffers(instance).iter().map(|id| id.get()).collect();
        let decoder = Decoder::new(Arc::new(model), &order, &mut |_| Ok(())).ok()?;
        Some(Self { decoder, state: 1 })
    }

    /// Exchanges two random buffers and places again what that affects; returns the number of placements.
    pub fn exchange_random(&mut self) -> u64 {
        let before = self.decoder.placement_count();
        let ids = [self.draw_movable(), self.draw_movable()];
        let changed = self.decoder.make_change(Change::Swap(ids[0], ids[1]), &mut |_| Ok(()));
        debug_assert!(changed.is_ok(), "there is no limit");
        self.decoder.keep_changes();
        self.decoder.placement_count() - before
    }

    /// Decodes the current order from scratch; returns the height in granules.
    #[must_use]
    pub fn from_scratch(&self) -> u64 {
        let order = self.decoder.order().to_vec();
        let decoder = Decoder::new(Arc::clone(self.decoder.model()), &order, &mut |_| Ok(()));
        decoder.map_or(0, |decoder| decoder.height())
    }

    /// The id of a buffer that is not pinned.
    fn draw_movable(&mut self) -> u32 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let free = &self.decoder.order()[self.decoder.first_movable() as usize..];
        let at = usize::try_from(self.state >> 33).unwrap_or(0) % free.len();
        free[at]
    }
}
