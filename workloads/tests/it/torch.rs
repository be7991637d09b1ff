//! PyTorch's own files: the figures below were counted by a script in Python that shares nothing with the readers.

use std::io::Read;

use planlab_workloads::batch::Scaling;
use planlab_workloads::formats::import::{self, Imported, Part};
use planlab_workloads::formats::{ReadOptions, read_trace, write_trace};
use planlab_workloads::recorded::stored_file;
use planlab_workloads::waste::{self, Cause, Waste};

const EARLY: &str = "samples/resnet50_b64_3it_early.pickle.zst";
const LATE: &str = "samples/resnet50_b64_3it_late.pickle.zst";
const STREAMS: &str = "samples/torch2.15_nullcuda_snapshot.pickle";
const PROFILE: &str = "samples/mlp_cpu_profiler_trace.json.zst";

fn import_with(file: &str, options: &ReadOptions) -> Imported {
    let bytes = stored_file(file).expect("it is embedded");
    import::read(file, bytes, None, options).expect("valid")
}

fn only_part(mut imported: Imported) -> Part {
    assert_eq!(imported.parts.len(), 1);
    imported.parts.remove(0)
}

fn only_part_of(file: &str) -> Part {
    only_part(import_with(file, &ReadOptions::default()))
}

fn waste_of(part: &Part) -> Waste {
    Waste::from_framework(&part.trace, part.framework.as_ref().expect("PyTorch")).expect("segments")
}

fn told(imported: &Imported) -> Vec<String> {
    imported.dropped.iter().map(ToString::to_string).collect()
}

#[test]
fn one_run_recorded_from_before_and_from_after_the_model_was_built_is_one_load() {
    for (file, older) in [(EARLY, None), (LATE, Some((320, 102_441_032)))] {
        let imported = import_with(file, &ReadOptions::default());
        let dropped = &imported.dropped;
        assert_eq!(dropped.first().map(|one| (one.count, one.bytes.unwrap_or(0))), older, "{file}");
        let part = only_part(imported);
        assert_eq!(part.name, "cuda:0");
        assert_eq!(part.trace.instance.len(), 2112, "{file}");
        assert_eq!(part.trace.instance.load().bytes.get(), 5_762_142_352, "{file}");
        let framework = part.framework.expect("PyTorch");
        assert_eq!(framework.reserved_peak.map(|bytes| bytes.get()), Some(6_570_377_216), "{file}");
    }
}

/// Bytes of rounding, unsplit blocks, partly used segments, those of others, cache, that of others, unknown, in place, above.
fn parts(waste: &Waste, height: u64) -> Vec<i128> {
    waste.parts_at(height).iter().map(|part| part.1).collect()
}

#[test]
fn the_recorded_peak_has_its_step_its_causes_and_its_stacks() {
    let part = only_part_of(EARLY);
    let (framework, waste) = (part.framework.as_ref().expect("PyTorch"), waste_of(&part));
    assert_eq!((waste.step, waste.reserved, waste.live), (2500, 6_570_377_216, 5_762_142_352));
    assert_eq!(parts(&waste, 5_762_142_352), [42_864, 31_522_816, 143_329_280, 0, 633_339_904, 0, 0, 0, 0]);
    let (step, peak) = waste::peak_buffers(&part.trace);
    assert_eq!(step, 2500);
    let sizes: Vec<u64> = peak.iter().map(|&id| part.trace.instance.buffer(id).size.get()).collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b));
    assert_eq!(sizes.iter().sum::<u64>(), 5_762_142_352);
    let first = &part.trace.labels.buffers[0];
    assert!(first.op.as_deref().is_some_and(|op| op.contains("torchvision/models/resnet.py:")), "{first:?}");
    assert_eq!(framework.call_stack(0).next(), Some("torch/utils/_device.py:122 __torch_function__"));
    assert!(framework.stacks.len() < framework.stack_of.len(), "equal stacks are one");
    let annotated = part.trace.labels.buffers.iter().filter(|label| label.category.is_some()).count();
    assert!(annotated > 0, "buffers of the optimizer have its annotation");
}

#[test]
fn the_model_and_the_state_of_the_optimizer_keep_their_size() {
    for file in [EARLY, LATE] {
        let part = only_part_of(file);
        let scaling = Scaling::from_trace(&part.trace, part.framework.as_ref().expect("PyTorch"));
        // 320 parameters and statistics of ResNet-50, and a momentum for each of 161 parameters.
        assert_eq!(scaling.kept_buffers(), (320 + 161, 102_441_032 + 102_228_128), "{file}");
    }
}

#[test]
fn what_two_streams_hold_is_told_apart() {
    for (file, step, live, expected) in [
        (LATE, 2166, 5_762_142_352, [42_864, 31_522_816, 143_329_280, 0, 633_339_904, 0, 0, 0, 0]),
        (STREAMS, 133, 41_341_904, [2_096, 777_216, 0, 1_918_976, 0, 69_206_016, 0, 0, 0]),
    ] {
        let part = only_part_of(file);
        let waste = waste_of(&part);
        assert_eq!((waste.step, waste.live, waste.outside), (step, live, 0), "{file}");
        assert_eq!(parts(&waste, live), expected, "{file}");
    }
    let part = only_part_of(STREAMS);
    let waste = waste_of(&part);
    // The load of step 108 is 19,540,656 above what is live at step 133, 3,568 of it by rounding to 512 at most.
    assert_eq!(waste.needed_elsewhere(60_882_560), 60_882_560 - 41_341_904 - 2_096);
}

#[test]
fn pytorchs_own_counts_are_those_of_the_trace() {
    for (file, peak, last) in [
        (EARLY, 5_793_708_032, vec![246_061_056, 243_204_840]),
        (LATE, 5_793_708_032, vec![246_061_056, 243_204_840]),
        (STREAMS, 60_886_528, vec![16_178_176, 16_176_080, 16_178_176]),
    ] {
        let framework = only_part_of(file).framework.expect("PyTorch");
        assert_eq!(framework.allocated_peak.map(|bytes| bytes.get()), Some(peak), "{file}");
        let theirs: Vec<u64> = framework.counts.iter().map(|count| count.theirs).collect();
        assert_eq!(theirs, last, "{file}");
        assert!(framework.counts.iter().all(|count| count.ours == count.theirs), "{:?}", framework.counts);
    }
}

#[test]
fn offsets_are_aligned_as_pytorchs_addresses_are() {
    for (file, alignment) in [(EARLY, 512), (STREAMS, 512), (PROFILE, 64)] {
        let part = only_part_of(file);
        assert!(part.trace.instance.buffers().iter().all(|buffer| buffer.align.get() == alignment), "{file}");
        let own = part.own_plan().expect("every buffer has an address");
        part.trace.instance.verify(own).expect("PyTorch's own placement is a plan");
    }
    let options = ReadOptions { alignment: planlab_dsa::Alignment::new(64), ..ReadOptions::default() };
    let part = only_part(import_with(STREAMS, &options));
    assert!(part.trace.instance.buffers().iter().all(|buffer| buffer.align.get() == 64));
}

#[test]
fn two_streams_and_a_failure() {
    let imported = import_with(STREAMS, &ReadOptions::default());
    assert_eq!(told(&imported), [""; 0]);
    let part = only_part(imported);
    let framework = part.framework.expect("PyTorch");
    assert_eq!(part.trace.instance.len(), 49);
    assert_eq!(part.trace.instance.load().bytes.get(), 60_882_560);
    assert_eq!(framework.reserved_peak.map(|bytes| bytes.get()), Some(113_246_208));
    let [failure] = framework.failures.as_slice() else { panic!("one failure") };
    assert_eq!((failure.step, failure.size, failure.device_free), (142, 1 << 41, Some(17_156_800_512)));
    assert_eq!((failure.stream, failure.asked_of_device), (0, Some(1 << 41)));
    assert_eq!(failure.stack[0], "scripts/mk_snapshot.py:17 <module>");
    assert_eq!(waste::bytes_at(&part.trace, &framework.segments, 142), (23_068_672, 16_176_080));
    let streams: std::collections::BTreeSet<u64> = framework.streams.iter().copied().collect();
    assert_eq!(streams.into_iter().collect::<Vec<_>>(), [0, 4112]);
    // What is live at the end takes just the bytes that the allocator counts as allocated.
    let blocks = |bytes: u64| bytes.next_multiple_of(512);
    let end = part.trace.instance.horizon();
    let last = part.trace.instance.buffers().iter().filter(|buffer| buffer.live.end() == end);
    assert_eq!(last.map(|buffer| blocks(buffer.size.get())).sum::<u64>(), 16_178_176);
}

#[test]
fn a_stream_is_a_part() {
    let all = only_part_of(STREAMS);
    let (mut buffers, mut counts) = (0, 0);
    for stream in [0, 4112] {
        let name = format!("cuda:0/stream-{stream}");
        let options = ReadOptions { part: Some(name.clone()), ..ReadOptions::default() };
        let part = only_part(import_with(STREAMS, &options));
        assert_eq!(part.name, name);
        buffers += part.trace.instance.len();
        let framework = part.framework.expect("PyTorch");
        assert!(!framework.segments.is_empty(), "stream {stream}");
        counts += framework.counts.len();
        assert!(framework.segments.iter().all(|segment| segment.stream == stream));
        assert_eq!(framework.failures.len(), usize::from(stream == 0), "stream 0 ran out of memory");
        assert!(framework.counts.iter().all(|count| count.ours == count.theirs), "{:?}", framework.counts);
    }
    assert!(counts > 0);
    assert_eq!(buffers, all.trace.instance.len());
    let options = ReadOptions { part: Some("cuda:1".to_owned()), ..ReadOptions::default() };
    let error =
        read_trace(STREAMS, stored_file(STREAMS).expect("embedded"), &options).expect_err("no such part");
    assert!(error.reason().contains("no part `cuda:1` in it; it has cuda:0"), "{error}");
}

#[test]
fn a_profile_has_the_profilers_own_total() {
    let imported = import_with(PROFILE, &ReadOptions::default());
    assert_eq!(told(&imported), [""; 0]);
    let part = only_part(imported);
    assert_eq!((part.name.as_str(), part.trace.instance.len()), ("cpu", 13));
    assert_eq!(part.trace.instance.load().bytes.get(), 95_248);
    assert_eq!(part.framework.expect("PyTorch").allocated_peak.map(|bytes| bytes.get()), Some(95_248));
    let first = &part.trace.labels.buffers[0];
    assert_eq!(first.op.as_deref(), Some("aten::addmm"));
}

#[test]
fn recordings_are_traces_wherever_traces_are_read() {
    for (file, load) in [(LATE, 5_762_142_352_u64), (STREAMS, 60_882_560), (PROFILE, 95_248)] {
        let bytes = stored_file(file).expect("embedded");
        let trace = read_trace(file, bytes, &ReadOptions::default()).expect("valid");
        assert_eq!(trace.instance.load().bytes.get(), load, "{file}");
        assert_eq!(trace.notices.is_empty(), file != LATE, "{file}: {:?}", trace.notices);
        let again = read_trace("again.csv", &write_trace(&trace), &ReadOptions::default()).expect("valid");
        assert_eq!(again.instance, trace.instance, "{file}");
        for (old, new) in trace.labels.buffers.iter().zip(&again.labels.buffers) {
            assert_eq!((&old.name, &old.category, &old.op), (&new.name, &new.category, &new.op), "{file}");
        }
    }
}

#[test]
fn sizes_are_rounded_where_an_alignment_is_asked_for() {
    let options = ReadOptions { alignment: planlab_dsa::Alignment::new(512), ..ReadOptions::default() };
    let part = only_part(import_with(EARLY, &options));
    assert_eq!(part.trace.instance.load().bytes.get(), 5_762_142_352 + 42_864);
    let waste = waste_of(&part);
    assert_eq!(waste.parts_at(waste.live)[0], (Cause::Rounding, 0));
}

/// A pickle of a device's history with these events, each `(action, address, size)`.
fn snapshot(events: &[(&str, u64, u64)]) -> Vec<u8> {
    snapshot_with(b"", events)
}

/// The same with more entries of the top.
fn snapshot_with(entries: &[u8], events: &[(&str, u64, u64)]) -> Vec<u8> {
    let mut bytes = b"\x80\x04}(".to_vec();
    bytes.extend(entries);
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend([0x8c, u8::try_from(text.len()).expect("short")]);
        bytes.extend(text.as_bytes());
    };
    let whole = |bytes: &mut Vec<u8>, number: u64| {
        bytes.extend([0x8a, 9]);
        bytes.extend(number.to_le_bytes());
        bytes.push(0);
    };
    text(&mut bytes, "device_traces");
    bytes.extend(b"](](");
    for (action, address, size) in events {
        bytes.extend(b"}(");
        text(&mut bytes, "action");
        text(&mut bytes, action);
        text(&mut bytes, "addr");
        whole(&mut bytes, *address);
        text(&mut bytes, "size");
        whole(&mut bytes, *size);
        bytes.push(b'u');
    }
    bytes.extend(b"eeu.");
    bytes
}

fn read(bytes: &[u8]) -> Result<Imported, String> {
    import::read("s.pickle", bytes, None, &ReadOptions::default()).map_err(|error| error.to_string())
}

/// Asserts that a pickle is refused at a byte.
#[track_caller]
fn wrong(bytes: &[u8], reason: &str) {
    let error = read(bytes).expect_err("refused");
    assert!(error.starts_with("s.pickle: byte ") && error.contains(reason), "{error}");
}

/// The archive of `torch.save`: sizes behind the entry, and `name` padded by an extra field.
fn archive(name: &str, method: u8, pickle: &[u8]) -> Vec<u8> {
    let mut bytes = b"PK\x03\x04\0\0\x08\x08".to_vec();
    bytes.extend([method, 0]);
    bytes.extend([0; 16]);
    bytes.extend([u8::try_from(name.len()).expect("short"), 0, 6, 0]);
    bytes.extend(name.as_bytes());
    bytes.extend(b"FB\x02\0ZZ");
    bytes.extend(pickle);
    bytes.extend(b"PK\x07\x08\0\0\0\0\x9e\0\0\0\x9e\0\0\0PK\x03\x04 and more entries");
    bytes
}

#[test]
fn an_archive_of_torch_save_is_read() {
    let events = [("alloc", 8, 100), ("free_completed", 8, 100), ("alloc", 8, 50)];
    let plain = only_part(read(&snapshot(&events)).expect("valid"));
    let saved = only_part(read(&archive("s/data.pkl", 0, &snapshot(&events))).expect("valid"));
    assert_eq!(saved.trace.instance, plain.trace.instance);
    // What follows a pickle that is in no archive is still refused.
    wrong(&[snapshot(&events), b"PK".to_vec()].concat(), "something follows the end of the pickle");
}

#[test]
fn another_archive_is_named() {
    let pickle = snapshot(&[("alloc", 8, 100)]);
    let error = |bytes: &[u8]| read(bytes).expect_err("no archive of a snapshot");
    let other = error(&archive("word/document.xml", 0, &pickle));
    let start = "s.pickle: byte 0: this is a zip archive, and its first entry is `word/document.xml`; of";
    assert!(other.starts_with(start), "{other}");
    let packed = error(&archive("s/data.pkl", 8, &pickle));
    assert!(packed.contains("`s/data.pkl`, compressed; of archives only torch.save's are read"), "{packed}");
    let whole = archive("s/data.pkl", 0, &pickle);
    for length in [4, 20, 33] {
        assert!(error(&whole[..length]).contains("byte 0: "), "{length}");
    }
}

#[test]
fn a_free_that_was_only_requested_ends_no_life() {
    let events =
        [("alloc", 8, 100), ("free_requested", 8, 100), ("alloc", 512, 50), ("free_completed", 8, 100)];
    let part = only_part(read(&snapshot(&events)).expect("valid"));
    let lives: Vec<(u32, u32)> =
        part.trace.instance.buffers().iter().map(|buffer| buffer.live.into()).collect();
    assert_eq!(lives, [(1, 4), (3, 5)]);
    assert_eq!(part.trace.instance.load().bytes.get(), 150);
}

#[test]
fn blocks_are_rounded_as_the_snapshots_settings_say() {
    let events = [("segment_alloc", 0, 2 << 20), ("alloc", 0, 5000)];
    let taken = |settings: &[u8]| {
        let part = only_part(read(&snapshot_with(settings, &events)).expect("valid"));
        part.framework.expect("PyTorch").taken
    };
    assert_eq!(taken(b""), [5120]);
    // Halves: 4096, 6144, 8192.
    let settings =
        b"\x8c\x12allocator_settings}\x8c\x18roundup_power2_divisions}(\x8c\x011K\x02\x8c\x012K\x00us";
    assert_eq!(taken(settings), [6144]);
}

#[test]
fn the_rest_of_a_block_that_is_not_split_is_told_from_rounding() {
    // Of 20 MiB, 19.5 are asked for: half a MiB is not worth a block.
    let events = [("segment_alloc", 0, 20 << 20), ("alloc", 0, (39 << 19) - 100)];
    let part = only_part(read(&snapshot(&events)).expect("valid"));
    let framework = part.framework.as_ref().expect("PyTorch");
    assert_eq!((framework.taken[0], framework.tails[0]), (20 << 20, 1 << 19));
    let waste = Waste::from_framework(&part.trace, framework).expect("segments");
    assert_eq!(parts(&waste, waste.live), [100, 1 << 19, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_history_that_wrapped_says_so() {
    let mut events = vec![("free_completed", 8, 100)];
    events.extend((0..999).map(|number| ("alloc", 512 * number + 512, 4)));
    let imported = read(&snapshot(&events)).expect("valid");
    let told = told(&imported);
    assert!(
        told[0].starts_with("1000 events of history: frees are completed in it that were requested before")
    );
    assert!(told[1].starts_with("1 buffers from before the recording that it frees (100 bytes)"), "{told:?}");
    events[0] = ("free_requested", 8, 100);
    events[999] = ("free_completed", 8, 100);
    let told = read(&snapshot(&events)).expect("valid").dropped;
    assert!(told[0].to_string().contains("if it is the most that may be kept (max_entries)"), "{told:?}");
}

#[test]
fn bad_snapshots_are_refused_with_their_byte() {
    wrong(b"\x80\x04cposix\nsystem\n\x8c\x04true\x85R.", "byte 2: the opcode GLOBAL is refused");
    wrong(b"\x80\x04}.", "neither device_traces nor segments");
    wrong(b"\x80\x04N.", "a snapshot is a dict, this is a value of type None");
    wrong(b"\x80\x04}\x8c\x0ddevice_tracesNs.", "`device_traces` is a value of type None");
    wrong(b"\x80\x04}\x94(\x8c\x0ddevice_traces]\x94h\x01au.", "device_traces[0][0] is a value of type list");
    wrong(&snapshot(&[]), "there is no buffer in it");
    wrong(&snapshot(&[("alloc", 8, 1)])[..60], "the pickle ends");
    let mut nested = b"\x80\x04".to_vec();
    nested.extend(vec![b']'; 1_000_000]);
    nested.extend(vec![b'a'; 999_999]);
    nested.push(b'.');
    wrong(&nested, "a snapshot is a dict, this is a value of type list");
    nested.truncate(1_000_000);
    wrong(&nested, "the pickle ends without STOP");
    // Nested as an event, where the reader looks inside.
    let mut deep = b"\x80\x04}\x8c\x0ddevice_traces".to_vec();
    deep.extend(vec![b']'; 1_000_000]);
    deep.extend(vec![b'a'; 999_999]);
    deep.extend(b"s.");
    wrong(&deep, "device_traces[0][0] is a value of type list");
}

#[test]
fn sums_past_64_bits_are_refused() {
    let error = read(&snapshot(&[("alloc", 8, u64::MAX), ("alloc", 16, 1)])).expect_err("refused");
    assert!(error.contains("2^64") || error.contains("64 bits") || error.contains("overflow"), "{error}");
}

#[test]
fn an_event_a_block_and_a_history_are_there_once() {
    // A few bytes would be a recording of any length.
    let event = b"}\x94(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x08\x8c\x04sizeK\x07u";
    let traces = |rest: &[u8]| [b"\x80\x04}(\x8c\x0ddevice_traces](](", &event[..], rest].concat();
    assert!(read(&traces(b"eeu.")).is_ok());
    wrong(&traces(b"h\x00eeu."), "device_traces[0][1] is a dict that was read already: each is there once");
    wrong(&traces(b"eh\x00au."), "entry 0 of the memo is asked for, an event that was there already");
    let shared = b"\x80\x04}(\x8c\x01x]\x94(K\x01e\x8c\x0ddevice_traces](h\x00h\x00eu.";
    wrong(shared, "device_traces[1] and device_traces[0] are one list");
    let segment = b"}\x94(\x8c\x07address\x94K\x00\x8c\x0atotal_sizeM\xff\xff\x8c\x06blocks](";
    let block = b"}\x94(\x8c\x04sizeK\x01\x8c\x05state\x8c\x06activeu";
    let segments = |first: &[u8], second: &[u8]| {
        [b"\x80\x04}(\x8c\x08segments](", &segment[..], block, first, b"eu", second, b"eu."].concat()
    };
    assert!(read(&segments(b"", b"")).is_ok());
    wrong(&segments(b"h\x02", b""), "segments[0].blocks[1] is a dict that was read already");
    wrong(&segments(b"", b"h\x00"), "segments[1] is a dict that was read already");
}

#[path = "../../examples/large_snapshot/pickle.rs"]
mod large;

#[test]
fn a_history_is_the_same_whether_it_is_read_while_it_comes_or_later() {
    let mut bytes = Vec::new();
    large::LargeSnapshot::new(5_000).read_to_end(&mut bytes).expect("it cannot fail");
    let streamed = read(&bytes).expect("valid");
    // The list of lists is first the value of another key, which is not watched.
    let key = b"device_traces";
    let at = bytes.windows(key.len()).position(|window| window == key).expect("there");
    bytes[at..at + key.len()].copy_from_slice(b"other_traces_");
    assert!(bytes.ends_with(b"au."));
    bytes.truncate(bytes.len() - 2);
    // The list of lists is entry 312 of the memo.
    bytes.extend(b"\x8c\x0ddevice_tracesj\x38\x01\0\0u.");
    let later = read(&bytes).expect("valid");
    assert_eq!(streamed.parts[0].trace.instance.len(), 1667 + 1666 + 300);
    assert_eq!(format!("{streamed:?}"), format!("{later:?}"));
}

#[test]
fn frames_that_share_a_long_name_have_no_line_each() {
    // A frame has 40 bytes in the file, and a line of 600.
    let name = "\u{1F980}".repeat(200);
    let mut bytes = b"\x80\x04}(\x8c\x01nX".to_vec();
    bytes.extend(u32::try_from(name.len()).expect("short").to_le_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend(b"\x94\x8c\x0ddevice_traces](](");
    for number in 1..=30_000_i32 {
        bytes.extend(b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrJ");
        bytes.extend((512 * number).to_le_bytes());
        bytes.extend(b"\x8c\x04sizeK\x07\x8c\x06frames]}(\x8c\x04nameh\x00\x8c\x04lineJ");
        bytes.extend(number.to_le_bytes());
        bytes.extend(b"uau");
    }
    bytes.extend(b"eeu.");
    let imported = read(&bytes).expect("valid");
    let told = told(&imported);
    assert!(told[0].contains("frames of call stacks: the lines of the others take 16 MiB"), "{told:?}");
    let frames = only_part(imported).framework.expect("PyTorch").frames;
    let lines: usize = frames.iter().map(String::len).sum();
    assert!(lines <= 16 << 20 && lines > 15 << 20 && frames.len() < 30_000, "{lines}");
}

#[test]
fn bad_profiles_are_refused_with_their_line() {
    let reader = import::reader("torch-profiler");
    let wrong = |text: &str, place: &str, reason: &str| {
        let error = import::read("p.json", text.as_bytes(), reader, &ReadOptions::default());
        let error = error.expect_err("refused").to_string();
        assert!(error.starts_with(place) && error.contains(reason), "{error}");
        assert!(error.len() < 300, "{error}");
    };
    wrong("{\"traceEvents\":[\n", "p.json:2:", "EOF");
    wrong("{\"traceEvents\":[]}", "p.json:1:", "profile with profile_memory=True");
    wrong(&format!("\n\"{}\"", "x".repeat(5000)), "p.json:2:", "invalid type: string");
    let event = "{\"ph\":\"i\",\"name\":\"[memory]\",\"args\":{\"Ev Idx\":1,\"Bytes\":8}}";
    wrong(&format!("{{\"traceEvents\":[\n{event}]}}"), "p.json:2:", "an event `[memory]` has no `Addr`");
    wrong(&format!("{{\"traceEvents\":{}", "[".repeat(1_000_000)), "p.json:1:", "");
    wrong(&format!("{{\"a\":{}", "[".repeat(1_000_000)), "p.json:1:", "");
}
