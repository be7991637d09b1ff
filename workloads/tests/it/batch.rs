//! The load that a recording predicts at twice its batch, against that of the recording at twice the batch.

use std::num::NonZeroU64;

use planlab_workloads::batch::Scaling;
use planlab_workloads::formats::import::Framework;
use planlab_workloads::recorded;

fn predicted(net: &str, batch: u64) -> f64 {
    let trace = |batch: u64| {
        let key = format!("torch/{net}/train/b{batch}");
        recorded::recorded(&key).expect("it is recorded").read_trace().expect("valid")
    };
    let (small, large) = (trace(batch), trace(2 * batch));
    let scaling = Scaling::from_trace(&small, &Framework::default());
    let batch = NonZeroU64::new(batch).expect("positive");
    let grown = scaling.instance_at(batch, 2 * batch.get()).expect("it fits");
    grown.load().bytes.get() as f64 / large.instance.load().bytes.get() as f64
}

#[test]
fn twice_the_batch_is_predicted_by_what_keeps_its_size() {
    let nets = [
        ("alexnet", 32),
        ("alexnet", 64),
        ("googlenet", 32),
        ("googlenet", 64),
        ("inception-resnet-v2", 32),
        ("inception-resnet-v2", 64),
        ("resnet50", 32),
        ("resnet50", 64),
        ("seq2seq", 32),
    ];
    let all = nets.map(|(net, batch)| (net, batch, predicted(net, batch)));
    let far: Vec<_> = all.iter().filter(|(.., ratio)| !(0.98..=1.05).contains(ratio)).collect();
    assert!(far.is_empty(), "of {all:?} these: {far:?}");
}
