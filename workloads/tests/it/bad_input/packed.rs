//! Tests of the limits of what unpacks to more, and of how a packed file is recognised.

use super::*;

/// The compressed form of `count` copies of a byte.
fn bomb(byte: u8, count: u64) -> Vec<u8> {
    let mut packed = Vec::new();
    zstd::stream::copy_encode(io::repeat(byte).take(count), &mut packed, 1).expect("compressed");
    packed
}

#[test]
fn what_has_no_end_is_refused_by_its_limit() {
    let of_line = "the line has more than 16777216 bytes, the limit of a line (--input-limit raises it)";
    let zeros = || io::repeat(0);
    let read =
        |input: Box<dyn Read>| read_trace_from("t.csv", input, &ReadOptions::default()).expect_err("a limit");
    assert_eq!(read(Box::new(zeros())).to_string(), format!("t.csv:1: {of_line}"));
    let row = rows("a,0,2,4\nb").into_bytes();
    let endless = io::Cursor::new(row).chain(io::repeat(b'x'));
    assert_eq!(read(Box::new(endless)).to_string(), format!("t.csv:3: {of_line}"));
    let packed = bomb(0, 64 << 20);
    assert!(packed.len() < 100_000);
    assert_eq!(read(Box::new(io::Cursor::new(packed.clone()))).reason(), of_line);
    for blank in ["\n", "\r\n", " \t \n"] {
        let lines = blank.repeat((17 << 20) / blank.len());
        let reason = of_line.replace("the line has", "the blank lines here have");
        assert_eq!(read(Box::new(io::Cursor::new(lines))).reason(), reason);
    }
    let plan =
        PlanFile::read_rows("p.csv", zeros(), InputLimits::default()).map(|_| ()).expect_err("a limit");
    assert_eq!(plan.reason(), of_line);
    let checked = check_input("<stdin>", &packed[..], InputLimits::default()).expect_err("a limit");
    assert_eq!(checked.reason(), of_line);
    let document = read_document("c.json", zeros(), InputLimits::default()).expect_err("a limit");
    let of_input = "bytes, the limit of an input (--input-limit raises it)";
    assert_eq!(document.to_string(), format!("c.json:1: the file has more than 67108864 {of_input}"));
}

#[test]
fn what_says_the_same_without_end_is_refused_before_it_fills_the_memory() {
    let cases = [
        ("id,lower,upper,size\n", "a,0,2,4\n", "this row is there already, in line 65537"),
        ("step,event,id,size\n", "0,alloc,a,4\n1,free,a,4\n", "this row is there already, in line 65537"),
        ("", "# note: x\n", "more than 65536 comments"),
        ("", "# prose\n", "more than 65536 comments"),
    ];
    for (header, row, reason) in cases {
        let rows = row.repeat(1 << 18 >> (row.matches('\n').count() - 1));
        let endless = io::Cursor::new(header).chain(io::Cursor::new(rows)).chain(io::repeat(b'x'));
        let error = read_trace_from("t.csv", endless, &ReadOptions::default()).expect_err("the same again");
        assert_eq!(error.reason(), reason);
        assert!(error.line() < 70_000, "{error}");
    }
    let plan = format!("id,offset\n{}", "a,0\n".repeat(1 << 17));
    let error =
        PlanFile::read_rows("p.csv", plan.as_bytes(), InputLimits::default()).map(|_| ()).expect_err("again");
    assert_eq!(error.reason(), "this row is there already, in line 65537");
}

#[test]
fn the_unpacked_size_is_limited_and_the_limit_can_be_raised() {
    let text = rows(&(0..1000).map(|id| format!("{id},0,2,4\n\n")).collect::<String>());
    let packed = compress_zstd(text.as_bytes(), 3).expect("compressed");
    let read = |bytes: &[u8], limit: usize| {
        let options = ReadOptions { limits: InputLimits::new(limit as u64), ..ReadOptions::default() };
        read_trace("t.csv", bytes, &options).map(|trace| trace.instance.len())
    };
    for (bytes, unpacked) in [(text.as_bytes(), ""), (&packed, " unpacked")] {
        assert_eq!(read(bytes, text.len()), Ok(1000));
        let most = text.len() - 1;
        let error = read(bytes, most).expect_err("one byte too many").to_string();
        let reason = format!(
            "the file has more than {most} bytes{unpacked}, the limit of an input (--input-limit raises it)"
        );
        assert!(error.ends_with(&reason), "{error}");
    }
    let blank = read(&bomb(b'\n', 1 << 20), 1000).expect_err("blank lines count");
    assert!(blank.reason().contains("more than 1000 bytes unpacked"), "{blank}");
}

#[test]
fn bytes_that_are_wrong() {
    let mut latin = rows("a,0,2,4\n").into_bytes();
    latin.extend(b"\xe4,0,2,4\n");
    refused(
        &latin,
        "t.csv:3: byte 28 of the file is not valid UTF-8: it is neither text nor a known recording",
    );
    let whole = compress_zstd(rows(&"a,0,2,4\n".repeat(50_000)).as_bytes(), 3).expect("compressed");
    for length in [5, whole.len() / 2, whole.len() - 1] {
        let error = read(&whole[..length]).expect_err("cut short");
        assert!(error.reason().starts_with("the zstd data is damaged or cut short"), "{error}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn gzip_is_unpacked_whatever_the_name() {
    let text = rows("a,0,2,4\nb,1,3,5\n");
    let whole = gzip(text.as_bytes());
    // Programs write files in pieces; each is a file by itself.
    let pieces = [gzip(&text.as_bytes()[..9]), gzip(&text.as_bytes()[9..])].concat();
    for bytes in [&whole, &pieces] {
        for name in ["t.csv", "t.csv.gz"] {
            let trace = read_trace(name, bytes, &ReadOptions::default()).expect("valid");
            assert_eq!(trace.instance, read(&text).expect("valid").instance);
        }
    }
    for length in [11, whole.len() / 2, whole.len() - 1] {
        let error = read(&whole[..length]).expect_err("cut short");
        assert!(error.reason().starts_with("the gzip data is damaged or cut short"), "{error}");
    }
    let mut damaged = whole;
    let checksum = damaged.len() - 6;
    damaged[checksum] ^= 1;
    let error = read(&damaged).expect_err("another checksum");
    assert!(error.reason().starts_with("the gzip data is damaged or cut short"), "{error}");
    let error = read_trace("t.csv.gz", text.as_bytes(), &ReadOptions::default()).expect_err("no gzip");
    assert_eq!(error.to_string(), "t.csv.gz: byte 0: not a gzip file, or cut short");
}

#[test]
fn what_gzip_unpacks_to_is_limited() {
    let bomb = gzip(&vec![b'\n'; 1 << 22]);
    assert!(bomb.len() < 10_000);
    let options = ReadOptions { limits: InputLimits::new(1 << 20), ..ReadOptions::default() };
    let error = read_trace("t.csv", &bomb, &options).expect_err("too long");
    assert!(error.reason().contains("more than 1048576 bytes unpacked"), "{error}");
    let error = read_document("t.toml", &bomb[..], InputLimits::new(1 << 20)).expect_err("too long");
    assert!(error.reason().contains("more than 1048576 bytes unpacked"), "{error}");
}

#[test]
fn the_content_counts_before_the_name() {
    let text = rows("a,0,2,4\n");
    let names = ["x.pickle", "x.onnx", "x.tflite", "x.pte", "x.hlo.pb"];
    for name in names {
        for text in [text.clone(), format!("\u{feff}# a: b\n\n{text}"), text.replace('\n', "\r\n")] {
            let trace = read_trace(name, text.as_bytes(), &ReadOptions::default()).expect(name);
            assert_eq!(trace.instance.len(), 1, "{name}");
        }
        // What is neither says what the name promised.
        let error = read_trace(name, b"nonsense\n", &ReadOptions::default()).expect_err("damaged");
        assert!(error.byte().is_some(), "{error}");
    }
    let graph = "{\"planlab\":\"graph\",\"version\":1}\n";
    let trace = read_trace("x.pickle", graph.as_bytes(), &ReadOptions::default()).expect("a graph");
    assert!(trace.instance.is_empty());
}

#[test]
fn a_name_that_ends_in_zst_promises_zstd() {
    let whole = compress_zstd(rows("a,0,2,4\n").as_bytes(), 3).expect("compressed");
    let read = |bytes: &[u8]| read_trace("t.csv.zst", bytes, &ReadOptions::default());
    for bytes in [&whole[..0], &whole[..2], rows("a,0,2,4\n").as_bytes()] {
        let error = read(bytes).expect_err("no frame");
        assert_eq!(error.to_string(), "t.csv.zst: byte 0: not a zstd file, or cut short");
    }
    let skipped = [b"\x52\x2a\x4d\x18\x03\0\0\0abc", whole.as_slice()].concat();
    for bytes in [&whole, &skipped] {
        assert_eq!(read(bytes).expect("valid").instance.len(), 1);
    }
}
