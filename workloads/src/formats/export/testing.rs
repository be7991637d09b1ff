//! What the tests of exporters share.

use planlab_dsa::{Offset, Plan};

use crate::formats::{ReadOptions, Trace, read_trace};

/// Three buffers; the last takes the first one's place, with a plan of height 96.
pub(crate) fn planned() -> (Trace, Plan) {
    let text = "# workload: small net\nid,lower,upper,size,alignment,may_overwrite,category,op\n\
                a,0,3,64,16,,input,\n\"b, \"\"quoted\"\"\",1,4,32,16,,activation,1:add\n2nd,2,5,48,16,a,,\n";
    let trace = read_trace("small", text.as_bytes(), &ReadOptions::default()).expect("valid");
    let in_place = trace.instance.in_place().to_vec();
    (trace, Plan { offsets: [0, 64, 0].map(Offset::new).to_vec(), in_place })
}
