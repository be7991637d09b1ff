//! Makes a plan before the first propagation.

use planlab_dsa::{BufferId, Call, KeepApart, Requests};

use super::keys::Key;
use super::profile::Request;
use super::{ProfileGuidedScoped, UNIT};

impl ProfileGuidedScoped {
    /// Plans before the first propagation, from its requests with their operations. `apart` lists buffers that may be
    /// in use together in another order. Buffers that are live at the last step are freed there.
    ///
    /// With the pairs of every legal order (`AllOrders` of `planlab-graph`), no legal order has a miss.
    pub fn plan_ahead(&mut self, requests: &Requests, apart: &[KeepApart]) {
        let mut record: Vec<Request> = Vec::new();
        let mut at = vec![None; requests.sizes().len()];
        let mut key_of: Vec<Option<Key>> = vec![None; at.len()];
        let mut step = 0;
        self.keys.rewind();
        for call in requests.events() {
            match call {
                Call::Alloc(id) => {
                    let index = id.index();
                    self.keys.enter(requests.operations().map_or(0, |operations| operations[index]));
                    let size = requests.sizes()[index].get().next_multiple_of(UNIT);
                    if size == 0 {
                        continue;
                    }
                    let key = self.keys.take();
                    (at[index], key_of[index]) = (Some(record.len()), Some(key));
                    record.push(Request { key, size, start: step, end: None });
                }
                Call::Free(id) => {
                    let Some(request) = at[id.index()] else { continue };
                    record[request].end = Some(step);
                }
            }
            step += 1;
        }
        record.iter_mut().for_each(|request| request.end = request.end.or(Some(step)));
        self.keys.rewind();
        self.profile.record(&record, self.keys.len());
        let key = |id: BufferId| key_of[id.index()];
        for (one, other) in apart.iter().filter_map(|pair| key(pair.first).zip(key(pair.second))) {
            self.profile.keep_apart(one, other);
        }
        self.renew();
    }
}
