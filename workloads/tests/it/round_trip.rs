//! Files are read back as they were written.

use std::fmt::Write;

use planlab_dsa::{Offset, Plan};
use planlab_workloads::formats::{
    InputLimits, PlanFile, compress_zstd, read_trace, write_minimalloc, write_plan, write_trace,
};
use planlab_workloads::{Catalog, ReadOptions, Trace};
use proptest::prelude::*;

/// A row of a file, before ids are made unique.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    life: (u64, u64),
    size: u64,
    align: u64,
    hint: Option<u64>,
    gaps: Vec<(u64, u64, bool)>,
    arena: usize,
    texts: [String; 2],
    /// Whether another row follows in its place, and whether it is kept apart from another row.
    links: [bool; 2],
}

fn row() -> impl Strategy<Value = Row> {
    let gaps = prop::collection::vec((0_u64..4, 1_u64..4, any::<bool>()), 0..3);
    let numbers = (0_u64..50, 1_u64..40, 1_u64..2000, 1_u64..9, prop::option::of(0_u64..100));
    let texts = ["[ -~]{0,6}", "[a-zé,\" ]{0,5}", "[a-z:]{0,4}"];
    (numbers, gaps, 0_usize..3, texts, any::<[bool; 2]>()).prop_map(
        |((lower, width, size, align, hint), gaps, arena, [name, category, op], links)| Row {
            name,
            life: (lower, lower + width),
            size,
            align,
            hint,
            gaps,
            arena,
            texts: [category, op],
            links,
        },
    )
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Consecutive gaps inside the live range.
fn gaps(row: &Row, scale: u64) -> String {
    let (mut at, end) = row.life;
    let mut out = String::new();
    for &(skip, width, window) in &row.gaps {
        let (low, high) = (at + skip, (at + skip + width).min(end));
        if low < high {
            let window = if window { format!("@0:{}", row.size.div_ceil(2)) } else { String::new() };
            let _ = write!(out, "{}-{}{window} ", low * scale, high * scale);
            at = high;
        }
    }
    out
}

/// A file with every feature; `scale` makes steps too large for 32 bits.
fn file(rows: &[Row], alignment: Option<u64>, arenas: bool, scale: u64, pins: bool) -> String {
    let mut out = String::from("# workload: test\n# note: a, b: c\n");
    if let Some(alignment) = alignment {
        let _ = writeln!(out, "# alignment: {alignment}");
    }
    if arenas {
        out.push_str("# arena fast: 1000000000000\n# arena slow: unlimited\n");
    }
    out.push_str("id,lower,upper,size,alignment,offset,hint,gaps,may_overwrite,apart,arena,category,op\n");
    let arena = |row: &Row| if arenas { ["fast", "slow", "other"][row.arena] } else { "" };
    let ids: Vec<String> =
        rows.iter().enumerate().map(|(index, row)| format!("{}.{index}", row.name)).collect();
    let mut next_pin = 0;
    for (index, row) in rows.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| (&rows[before], &ids[before]));
        // A buffer that takes over the place of the previous one starts at that one's last step.
        let heir = before.filter(|(other, id)| {
            row.links[0]
                && !id.contains([' ', '%'])
                && other.gaps.is_empty()
                && row.gaps.is_empty()
                && other.life.1 == row.life.0 + 1
                && other.size >= row.size
                && arena(other) == arena(row)
                && scale == 1
        });
        let apart = before
            .filter(|(other, id)| row.links[1] && !id.contains([' ', '%']) && arena(other) == arena(row));
        let align = if row.align > 4 { String::new() } else { row.align.to_string() };
        let pin = if pins && row.hint.is_none() { next_pin.to_string() } else { String::new() };
        next_pin += 4096;
        let hint = row.hint.map_or_else(|| "-1".to_owned(), |hint| hint.to_string());
        let cells = [
            quoted(&ids[index]),
            (row.life.0 * scale).to_string(),
            (row.life.1 * scale).to_string(),
            row.size.to_string(),
            align,
            pin,
            hint,
            gaps(row, scale),
            heir.map(|(_, id)| quoted(id)).unwrap_or_default(),
            apart.map(|(_, id)| quoted(id)).unwrap_or_default(),
            arena(row).to_owned(),
            quoted(&row.texts[0]),
            quoted(&row.texts[1]),
        ];
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

fn read(bytes: &[u8]) -> Trace {
    read_trace("t.csv", bytes, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Labels without line numbers.
fn without_lines(trace: &Trace) -> planlab_dsa::Labels {
    let mut labels = trace.labels.clone();
    labels.buffers.iter_mut().for_each(|label| label.row = None);
    labels
}

proptest! {
    #[test]
    fn a_trace_comes_back(
        mut rows in prop::collection::vec(row(), 0..12),
        alignment in prop::option::of(prop::sample::select(vec![1_u64, 4, 512])),
        arenas in any::<bool>(),
        large in any::<bool>(),
        pins in any::<bool>(),
    ) {
        if large {
            // If steps are ranked, gaps that end at no live range's start or end have no original step.
            rows.iter_mut().for_each(|row| row.gaps.clear());
        }
        // A pin is a multiple of 4096, and so of every alignment except these.
        rows.iter_mut().filter(|row| row.align == 3).for_each(|row| row.align = 4);
        let text = file(&rows, alignment, arenas, if large { 1 << 40 } else { 1 }, pins);
        let trace = read(text.as_bytes());
        prop_assert_eq!(trace.instance.len(), rows.len());
        let written = write_trace(&trace);
        let again = read(&written);
        prop_assert_eq!(&again.instance, &trace.instance, "{}", String::from_utf8_lossy(&written));
        prop_assert_eq!(without_lines(&again), without_lines(&trace));
        prop_assert_eq!(write_trace(&again), written.clone());
        let packed = compress_zstd(&written, 1).expect("compressed");
        prop_assert_eq!(read(&packed).instance, trace.instance.clone());

        let offsets: Vec<Offset> = rows.iter().zip(0..).map(|(row, id)| Offset::new(id * 977 + row.size)).collect();
        let plan = Plan { offsets, in_place: trace.instance.in_place().to_vec() };
        let rows = PlanFile::read_rows("p.csv", &write_plan(&trace, &plan)[..], InputLimits::default());
        prop_assert_eq!(rows.expect("what is written can be read").plan_for(&trace), Ok(plan));

        if let Ok(written) = write_minimalloc(&trace) {
            let plain = read(&written);
            prop_assert_eq!(plain.instance.buffers(), trace.instance.buffers());
        }
    }

    #[test]
    fn anything_is_read_or_refused_with_a_line(text in "[ -~\\n\"#,]{0,200}") {
        let text = format!("id,lower,upper,size,gaps\n{text}");
        if let Err(error) = read_trace("t.csv", text.as_bytes(), &ReadOptions::default()) {
            prop_assert!(error.line() >= 1 && error.line() <= text.lines().count() as u64 + 1);
        }
    }
}

#[test]
fn ranked_steps_with_gaps_keep_the_instance() {
    let text = "id,lower,upper,size,gaps\na,0,90000000000,8,5000000000-6000000000\n";
    let trace = read(text.as_bytes());
    assert_eq!(read(&write_trace(&trace)).instance, trace.instance);
}

#[test]
fn recorded_nets_come_back() {
    let catalog = Catalog::new(None);
    for key in
        ["chainer/seq2seq/train/b32/iteration1", "torch/bert-base/train/b16/s512", "onnx/resnet50/infer/b1"]
    {
        let trace = catalog.load(key).expect(key);
        let again = read(&write_trace(&trace));
        assert_eq!(again.instance.digest(), trace.instance.digest(), "{key}");
        assert_eq!(without_lines(&again), without_lines(&trace), "{key}");
    }
}

#[test]
fn idealloc_files_keep_every_conflict() {
    let text = "id,lower,upper,size\nz,7,9,4\na,0,1,8\nb,1,3,16\nc,2,8,32\nd,3,7,64\n";
    let trace = read_trace("t.csv", text.as_bytes(), &ReadOptions::default()).expect("valid");
    let written = planlab_workloads::formats::write_idealloc(&trace).expect("can be said");
    let lines: Vec<&[u8]> = written.split(|&byte| byte == b'\n').collect();
    assert_eq!(lines[..3], [&b"id,lower,upper,size"[..], b"0,14,18,4", b"1,0,2,8"]);
    let options = ReadOptions { dialect: planlab_workloads::Dialect::Open, ..ReadOptions::default() };
    let back = read_trace("i.csv", &written, &options).expect("valid");
    assert_eq!(back.instance.load().bytes, trace.instance.load().bytes);
    let conflicts = |instance: &planlab_dsa::Instance| -> Vec<bool> {
        let all = instance.buffers();
        all.iter().flat_map(|a| all.iter().map(move |b| a.live.overlaps(b.live))).collect()
    };
    assert_eq!(conflicts(&back.instance), conflicts(&trace.instance));
    let pinned = read_trace("p.csv", b"id,lower,upper,size,offset\na,0,1,8,0\n", &ReadOptions::default());
    let error = planlab_workloads::formats::write_idealloc(&pinned.expect("valid")).expect_err("a pin");
    assert!(error.to_string().contains("pinned"), "{error}");
}
