//! What is wrong with a file is named with its line; what is merely odd is read.

mod packed;

use std::io::{self, Read, Write};
use std::time::Duration;

use planlab_dsa::testing::Stopwatch;
use planlab_dsa::{Alignment, Offset, Plan, Step};
use planlab_workloads::formats::{
    InputLimits, PlanFile, check_input, compress_zstd, read_document, read_trace, read_trace_from,
    write_minimalloc, write_plan, write_trace,
};
use planlab_workloads::{Dialect, FormatError, ReadOptions, Trace};

fn read(text: impl AsRef<[u8]>) -> Result<Trace, FormatError> {
    read_trace("t.csv", text.as_ref(), &ReadOptions::default())
}

fn read_plan(file: &str, bytes: &[u8], trace: &Trace) -> Result<Plan, FormatError> {
    PlanFile::read_rows(file, bytes, InputLimits::default())?.plan_for(trace)
}

/// Rows under the plain header; the first is line 2.
fn rows(rows: &str) -> String {
    format!("id,lower,upper,size\n{rows}")
}

#[track_caller]
fn refused(text: impl AsRef<[u8]>, message: &str) {
    let error = read(text.as_ref()).map(|_| ()).expect_err(message);
    assert_eq!(error.to_string(), message);
    assert_eq!(error.file(), "t.csv");
    assert_eq!(format!("t.csv:{}: {}", error.line(), error.reason()), message);
}

#[test]
fn rows_that_are_wrong() {
    refused(rows("a,0,2\n"), "t.csv:2: 3 fields, but the header has 4");
    refused(rows("a,0,2,4,5\n"), "t.csv:2: more fields than the header's 4");
    refused(rows("a,0,2,-4\n"), "t.csv:2: size -4 is negative");
    refused(rows("a,-1,2,4\n"), "t.csv:2: lower -1 is negative");
    refused(rows("a,0,2,18446744073709551616\n"), "t.csv:2: size 18446744073709551616 does not fit 64 bits");
    refused(rows("a,0,2,NaN\n"), "t.csv:2: size `NaN` is not a whole number");
    refused(rows("a,0,2,1e3\n"), "t.csv:2: size `1e3` is not a whole number");
    refused(rows("a,0,2,1.5\n"), "t.csv:2: size `1.5` is not a whole number");
    refused(rows("a,0,2,+3\n"), "t.csv:2: size `+3` is not a whole number");
    refused(rows("a,0,2,\n"), "t.csv:2: size is empty");
    refused(rows("a,0,2,0\n"), "t.csv:2: size is 0");
    refused(rows("a,3,2,4\n"), "t.csv:2: lower 3 is above upper 2");
    refused(rows(",0,2,4\n"), "t.csv:2: the id is empty");
    refused(rows("a,0,2,4\nb,0,1,1\na,5,6,4\n"), "t.csv:4: the id `a` is taken already, in line 2");
    refused(rows("\"a,0,2,4\n"), "t.csv:2: a double quote is never closed");
    refused(
        rows("a,0,1,9223372036854775808\nb,0,1,9223372036854775808\n"),
        "t.csv:3: buffer 1: with it the sizes (and their alignments) sum to more than 2^64 - 1 bytes \
         (buffer 1 is `b`)",
    );
}

#[test]
fn a_life_of_length_zero_names_the_dialects() {
    let error = read(rows("a,2,2,4\n")).expect_err("empty").to_string();
    assert!(error.starts_with("t.csv:2: a life of length zero: lower 2, upper 2 as half-open; the dialects"));
    for dialect in Dialect::ALL {
        assert!(error.contains(dialect.name()), "{error}");
        assert_eq!(dialect.name().parse(), Ok(dialect));
    }
}

#[test]
fn headers_that_are_wrong() {
    refused("", "t.csv:1: the file is empty: there is no header line");
    refused("# only: metadata\n\n", "t.csv:1: the file is empty: there is no header line");
    refused("id,lower,upper\n", "t.csv:1: missing column `size`; the header has `id`, `lower`, `upper`");
    refused(
        "0,0,2,4\n",
        "t.csv:1: missing columns `id`, `lower`, `upper`, `size`; the header has `0`, `0`, `2`, `4`",
    );
    refused(
        "id;lower;upper;size\n",
        "t.csv:1: missing columns `id`, `lower`, `upper`, `size`; the header has `id;lower;upper;size`; columns are \
         separated by commas",
    );
    refused("id,lower,size\n", "t.csv:1: missing column `upper`; the header has `id`, `lower`, `size`");
    refused("id,lower,begin,upper,size\n", "t.csv:1: the columns `lower` and `begin` say the same thing");
    refused("id,lower,upper,end,size\n", "t.csv:1: the columns `upper` and `end` say the same thing");
    refused(
        "# x: y\nstep,event,id\n",
        "t.csv:2: missing column `size`; the header has `step`, `event`, `id`",
    );
    refused("# alignment: 0\nid,lower,upper,size\n", "t.csv:1: the alignment is 0");
    refused("# alignment: x\n", "t.csv:1: the alignment `x` is not a whole number");
    refused("# step-unit: fortnight\n", "t.csv:1: the step unit `fortnight` is not one of ns, us, ms, s");
    refused("# arena a: 1\n# arena a: 2\n", "t.csv:2: the arena `a` is declared twice");
}

#[test]
fn columns_that_are_wrong() {
    let head = |columns: &str, row: &str| format!("id,lower,upper,size,{columns}\n{row}\n");
    let wrong = |columns: &str, cell: &str, message: &str| {
        refused(head(columns, &format!("a,2,9,64,{cell}")), &format!("t.csv:2: {message}"));
    };
    wrong("alignment", "0", "alignment is 0");
    wrong("offset", "-2", "offset -2 is negative");
    wrong("gaps", "4", "the gap `4` is not `lo-hi` or `lo-hi@wlo:whi`");
    wrong("gaps", "4-5@1", "the gap `4-5@1` is not `lo-hi` or `lo-hi@wlo:whi`");
    wrong("gaps", "5-5", "the gap `5-5` is empty");
    wrong("gaps", "1-3", "the gap [1, 3) leaves the life [2, 9)");
    wrong("gaps", "3-5 4-6", "the gap [4, 6) overlaps the one before it");
    wrong("gaps", "3-5@0:65", "the window of the gap [3, 5) is empty or leaves the buffer");
    wrong("may_overwrite", "b", "may_overwrite names `b`, which is no id of this file");
    wrong("apart", "a", "buffers 0 and 0 cannot be kept apart: they are one buffer (buffer 0 is `a`)");
    refused(
        head("offset,alignment", "a,0,2,4,3,2"),
        "t.csv:2: buffer 0: pinned at offset 3, which is not a multiple of its alignment 2 (buffer 0 is `a`)",
    );
    refused(
        head("offset", "a,0,2,4,18446744073709551615"),
        "t.csv:2: buffer 0: pinned at offset 18446744073709551615, its end lies past 2^64 - 1 (buffer 0 is `a`)",
    );
    refused(
        head("offset", "a,0,2,4,0\nb,0,2,4,2"),
        "t.csv:3: buffers 0 and 1: both are pinned, and they overlap at step 0 (buffer 1 is `b`)",
    );
    refused(
        head("may_overwrite", "a,0,2,4,\nb,2,3,4,a"),
        "t.csv:3: buffer 1 may not overwrite buffer 0: its first step is not the other's last (buffer 1 is `b`)",
    );
}

#[test]
fn events_that_are_wrong() {
    let wrong = |rows: &str, message: &str| refused(format!("step,event,id,size\n{rows}"), message);
    wrong("0,grow,a,4\n", "t.csv:2: the event `grow` is neither alloc nor free");
    wrong("0,alloc,a,4\n1,free,b,4\n", "t.csv:3: `b` is freed at step 1, but it is not live");
    wrong("0,alloc,a,4\n1,alloc,a,4\n", "t.csv:3: `a` is allocated again, but it is live since line 2");
    wrong(
        "3,alloc,a,4\n3,free,a,4\n",
        "t.csv:3: a life of length zero: `a` is allocated (line 2) and freed at step 3",
    );
    wrong("0,alloc,a,0\n", "t.csv:2: size is 0");
    wrong("0,alloc,a,4\n2,free,a,5\n", "t.csv:3: `a` is freed with size 5, but line 2 gave it 4");
    wrong("18446744073709551615,alloc,a,4\n", "t.csv:2: a step of 2^64 - 1 leaves no room for the one after");
}

#[test]
fn events_say_of_a_buffer_what_rows_do() {
    let events = "# arena fast: 1000\n\
        step,event,id,size,alignment,offset,hint,gaps,may_overwrite,apart,arena,category,op\n\
        0,alloc,a,64,64,0,,1-2@0:8,,,fast,param,conv\n\
        2,alloc,b,32,,-1,128,,a,,fast,act,relu\n\
        2,alloc,c,8,8,,,3-4,,b,fast,,\n\
        3,free,a,64,,-1,,,,,,param,\n\
        5,free,c,,,,,,,,,,\n";
    let rows = "# arena fast: 1000\n\
        id,lower,upper,size,alignment,offset,hint,gaps,may_overwrite,apart,arena,category,op\n\
        a,0,3,64,64,0,,1-2@0:8,,,fast,param,conv\n\
        b,2,6,32,,-1,128,,a,,fast,act,relu\n\
        c,2,5,8,8,,,3-4,,b,fast,,\n";
    let (events, rows) = (read(events).expect("valid"), read(rows).expect("valid"));
    assert_eq!(events.instance, rows.instance);
    assert_eq!(write_trace(&events), write_trace(&rows));
}

#[test]
fn events_name_the_buffer_that_has_the_id() {
    let of = |rows: &str| read(format!("step,event,id,size,may_overwrite,apart\n{rows}"));
    let trace =
        of("0,alloc,x,8,,\n1,free,x,,,\n1,alloc,x,8,,\n3,alloc,y,8,x,\n4,free,x,,,\n5,alloc,x,8,,x#2\n");
    let trace = trace.expect("valid");
    let names = |id: planlab_dsa::BufferId| trace.labels.buffers[id.index()].name.as_str();
    let [pair] = trace.instance.in_place() else { panic!("{:?}", trace.instance.in_place()) };
    assert_eq!((names(pair.input), names(pair.output)), ("x#2", "y"));
    let [pair] = trace.instance.keep_apart_pairs() else { panic!("{:?}", trace.instance.keep_apart_pairs()) };
    assert_eq!((names(pair.first), names(pair.second)), ("x#2", "x#3"));
    let error =
        of("0,alloc,x,8,,\n1,free,x,,,\n1,alloc,x,8,,\n2,free,x,,,\n3,alloc,y,8,,x\n").expect_err("which?");
    assert_eq!(error.to_string(), "t.csv:6: `x` is not live at step 3, and several buffers have the id");
}

#[test]
fn columns_of_events_that_are_wrong() {
    for (column, cell) in [
        ("alignment", "64"),
        ("offset", "0"),
        ("hint", "0"),
        ("gaps", "0-1"),
        ("may_overwrite", "b"),
        ("apart", "b"),
        ("arena", "fast"),
    ] {
        let text = format!("step,event,id,size,{column}\n0,alloc,a,8,\n2,free,a,8,{cell}\n");
        let message = format!(
            "t.csv:3: a free has `{cell}` in the column `{column}`, which belongs to the row of the alloc"
        );
        refused(text, &message);
    }
    let head =
        |columns: &str, row: &str| format!("step,event,id,size,{columns}\n0,alloc,{row}\n3,free,a,8,\n");
    refused(head("alignment", "a,8,0"), "t.csv:2: alignment is 0");
    refused(head("offset", "a,8,-2"), "t.csv:2: offset -2 is negative");
    refused(head("gaps", "a,8,1-9"), "t.csv:2: the gap [1, 9) leaves the life [0, 3)");
    refused(head("may_overwrite", "a,8,z"), "t.csv:2: may_overwrite names `z`, which is no id of this file");
    refused(
        head("upper", "a,8,3"),
        "t.csv:1: the column `upper` has no meaning beside `event`: rows are events",
    );
    refused(
        "step,event,id,size,aligment\n0,alloc,a,4,8\n",
        "t.csv:1: unknown column `aligment`; did you mean `alignment`?",
    );
    let notices = read("step,event,id,size,layer\n0,alloc,a,4,8\n").expect("left out").notices;
    assert_eq!(notices, ["column `layer` is not known and was left out"]);
}

#[test]
fn directives_that_are_there_twice() {
    for (first, second) in [("alignment: 64", "Alignment: 64"), ("step-unit: ns", "step-unit: us")] {
        let key = first.split(':').next().unwrap_or_default();
        let message =
            |lines: &str| format!("t.csv:{}: `# {key}` is there twice, in lines {lines}", &lines[6..]);
        refused(format!("# {first}\n# note: x\n# {second}\n{}", rows("")), &message("1 and 3"));
        refused(format!("# {first}\n{}# {second}\n", rows("a,0,2,4\n")), &message("1 and 4"));
    }
}

#[test]
fn a_row_is_never_taken_for_a_comment() {
    let lost = |line: &str, quoted: &str| {
        refused(
            rows(&format!("a,0,3,4096\n{line}\n")),
            &format!(
                "t.csv:3: `{line}` is not `# key: value`: put an id that begins with `#` in quotes \
                 (`{quoted}`), and other comments above the header"
            ),
        );
    };
    lost("#1,0,3,4096", "\"#1\",0,3,4096");
    lost("# 1,0,3,4096", "\"# 1\",0,3,4096");
    lost("#1,0,3,4096,aten::conv", "\"#1\",0,3,4096,aten::conv");
    lost("# one, and one in between", "\"# one\", and one in between");
    refused(
        rows("#1: x,0,3,4\n"),
        "t.csv:2: `#1: x,0,3,4` may be a row or metadata: put an id that begins with `#` in quotes \
         (`\"#1: x\",0,3,4`), and metadata with this many commas above the header",
    );
    let error = read("step,event,id,size\n0,alloc,a,4\n#1,free,a,4\n").expect_err("a step");
    assert_eq!(error.line(), 3);
    let trace = read(rows("\"#1\",0,3,4096\n \"# 2: x\" ,0,3,4\n# note: a, b\n# done in 3 ms\n#\n##\n"))
        .expect("quoted");
    let names: Vec<&str> = trace.labels.buffers.iter().map(|label| label.name.as_str()).collect();
    assert_eq!(names, ["#1", "# 2: x"]);
    assert_eq!(trace.labels.meta_value("note"), Some("a, b"));
    let written = write_trace(&trace);
    assert_eq!(read(&written).expect("what is written can be read").instance, trace.instance);
    let plan = planlab_dsa::Plan::from_offsets([Offset::new(0), Offset::new(4096)]);
    assert_eq!(read_plan("p.csv", &write_plan(&trace, &plan), &trace).as_ref(), Ok(&plan));
    let ends = [&write_plan(&trace, &plan)[..], b"# done in 3 ms\n#\n"].concat();
    assert_eq!(read_plan("p.csv", &ends, &trace), Ok(plan));
    let error = read_plan("p.csv", b"id,offset\n#1,0\n\"# 2: x\",4096\n", &trace).expect_err("no quotes");
    assert!(error.to_string().starts_with("p.csv:2: `#1,0` is not `# key: value`"), "{error}");
}

#[test]
fn directives_may_be_in_capitals() {
    let plain = read("# alignment: 64\n# arena Sram: 640\nid,lower,upper,size\na,0,2,5\n").expect("valid");
    let trace = read("# Alignment: 64\n# ARENA Sram: 640\nid,lower,upper,size\na,0,2,5\n").expect("valid");
    assert_eq!((&trace.instance, trace.labels.meta_value("alignment")), (&plain.instance, Some("64")));
    assert_eq!(trace.instance.buffers()[0].size.get(), 64);
    assert_eq!(write_trace(&trace), write_trace(&plain));
    assert!(trace.notices.is_empty() && plain.notices.is_empty());
    refused("# Alignment: x\n", "t.csv:1: the alignment `x` is not a whole number");
}

#[test]
fn misspelt_directives_are_noticed() {
    for (comment, usage) in [
        ("alignment 64", "# alignment: BYTES"),
        ("Alignment = 64", "# alignment: BYTES"),
        ("alignement: 64", "# alignment: BYTES"),
        ("alignment bytes: 64", "# alignment: BYTES"),
        ("aligment: all", "# alignment: BYTES"),
        ("arena sram 100", "# arena NAME: BYTES"),
        ("arena sram unlimited", "# arena NAME: BYTES"),
        ("areena sram: 100", "# arena NAME: BYTES"),
        ("rank_steps: yes", "# rank-steps: yes"),
        ("step_unit: ns", "# step-unit: ns"),
    ] {
        let trace = read(format!("# {comment}\n{}", rows("a,0,2,4\n"))).expect(comment);
        assert_eq!(trace.instance, read(rows("a,0,2,4\n")).expect("plain").instance, "{comment}");
        let notice = format!("t.csv:1: `# {comment}` sets nothing; did you mean `{usage}`?");
        assert_eq!(trace.notices, [notice]);
    }
    for prose in ["alignment is not given", "arena of the second device", "parent: resnet", "a", "", "é: 4"]
    {
        let trace = read(format!("# {prose}\n{}", rows("a,0,2,4\n"))).expect(prose);
        assert!(trace.notices.is_empty(), "{prose}");
    }
}

#[test]
fn ten_megabytes_on_one_line_are_refused_at_once() {
    let stopwatch = Stopwatch::start();
    for filler in ["x", ",", "\"", "1,", "#", "é", "\"\"", "a b,"] {
        let long = filler.repeat(10_000_000 / filler.len());
        for text in [long.clone(), rows(&long), format!("id,lower,upper,size,gaps\na,0,9,4,{long}")] {
            if let Err(error) = read(&text) {
                assert!(error.to_string().len() < 500, "{} bytes of message", error.to_string().len());
            }
        }
    }
    // Anything quadratic in the length takes hours.
    stopwatch.assert_within(Duration::from_secs(60));
}

#[test]
fn a_plan_is_no_trace_unless_its_offsets_are_wanted_as_pins() {
    let text = "# planlab: plan\nid,lower,upper,size,offset,overwrites\na,0,2,4,0,\nb,0,2,4,4,\n";
    refused(
        text,
        "t.csv:2: this is a plan, not a trace (a trace comes before its plan); with `--pins` its offsets are fixed",
    );
    let trace = read_trace("t.csv", text.as_bytes(), &ReadOptions { pins: true, ..ReadOptions::default() })
        .expect("asked for");
    assert_eq!(trace.instance.buffers()[1].pin, Some(Offset::new(4)));
}

#[test]
fn what_is_odd_is_read() {
    let plain = read(rows("a,0,2,4\nb,1,3,5\n")).expect("plain");
    for odd in [
        "id,lower,upper,size\r\na,0,2,4\r\nb,1,3,5\r\n",
        "\u{feff}id,lower,upper,size\na,0,2,4\nb,1,3,5",
        "\n\nid,lower,upper,size\n\na,0,2,4\n   \nb,1,3,5\n\n",
        " ID , Lower,upper, size\n a, 0 ,2,4\nb,1,3,\t5\n",
        "size,upper,lower,id\n4,2,0,a\n5,3,1,b\n",
        "buffer,start,end,size\na,0,1,4\nb,1,2,5\n",
        "buffer_id,begin,upper,size\na,0,2,4\nb,1,3,5\n",
        "id,lower,upper,size,hint,offset,gaps\na,0,2,4,-1,-1,\nb,1,3,5,,,\n",
        "step,event,id,size\n0,alloc,a,4\n1,alloc,b,5\n2,free,a,4\n3,free,b,\n",
        "# a comment without a key\nid,lower,upper,size\na,0,2,4\n# note: one in between\nb,1,3,5\n",
    ] {
        let trace = read(odd).unwrap_or_else(|error| panic!("{error}: {odd:?}"));
        assert_eq!(trace.instance, plain.instance, "{odd:?}");
    }
    assert_eq!(read(rows("")).expect("no buffers").instance.len(), 0);
    refused(
        "# x\nid,lower,upper,size,aligment\na,0,2,4,8\n",
        "t.csv:2: unknown column `aligment`; did you mean `alignment`?",
    );
    let notices = read("id,lower,upper,size,layer\na,0,2,4,8\n").expect("left out").notices;
    assert_eq!(notices, ["column `layer` is not known and was left out"]);
    let notices = read("id,lower,upper,size,overwrites\na,0,2,4,\nb,1,3,4,a\n").expect("left out").notices;
    assert_eq!(notices, ["column `overwrites` was left out: permissions are in `may_overwrite`"]);
}

#[test]
fn dialects_say_which_ends_belong_to_a_life() {
    let text = rows("a,2,4,8\n");
    for (dialect, life) in
        [(Dialect::HalfOpen, (2, 4)), (Dialect::Inclusive, (2, 5)), (Dialect::Open, (3, 4))]
    {
        let options = ReadOptions { dialect, ..ReadOptions::default() };
        let trace = read_trace("t.csv", text.as_bytes(), &options).expect("valid");
        assert_eq!(<(u32, u32)>::from(trace.instance.buffers()[0].live), life);
    }
    let trace = read("id,start,end,size,gaps\na,2,8,8,4-5\n").expect("valid");
    let buffer = &trace.instance.buffers()[0];
    assert_eq!(<(u32, u32)>::from(buffer.live), (2, 9));
    assert_eq!(<(u32, u32)>::from(buffer.pauses[0].steps), (4, 6));
}

#[test]
fn nanoseconds_are_ranked_and_kept() {
    let text = rows("a,5000000000,9000000001,4\nb,9000000000,9999999999,4\n");
    let trace = read(&text).expect("valid");
    let lives: Vec<(u32, u32)> = trace.instance.buffers().iter().map(|b| b.live.into()).collect();
    assert_eq!(lives, [(0, 2), (1, 3)]);
    assert_eq!(trace.labels.buffers[1].original_steps, Some((9_000_000_000, 9_999_999_999)));
    assert_eq!(read(rows("a,5,9,4\n")).expect("valid").labels.buffers[0].original_steps, None);
    let asked = ReadOptions { rank_steps: true, ..ReadOptions::default() };
    let ranked = read_trace("t.csv", rows("a,5,9,4\n").as_bytes(), &asked).expect("valid");
    assert_eq!(ranked.instance.horizon(), Step::new(1));
}

#[test]
fn steps_are_times_where_the_file_says_so() {
    let of = |head: &str| read(format!("{head}{}", rows("a,5,9,4\n"))).map(|trace| trace.step_nanoseconds());
    assert_eq!([of(""), of("# rank-steps: yes\n")], [Ok(None), Ok(None)]);
    let units = ["ns", "us", "ms", "s"].map(|unit| of(&format!("# Step-Unit: {unit}\n")));
    assert_eq!(units, [1, 1000, 1_000_000, 1_000_000_000].map(|nanoseconds| Ok(Some(nanoseconds))));
    refused("# step-unit: ops\n", "t.csv:1: the step unit `ops` is not one of ns, us, ms, s");
}

#[test]
fn the_unit_of_steps_is_written_where_the_steps_are() {
    let text = format!("# rank-steps: yes\n# step-unit: ns\n{}", rows("a,5,9,4\nb,7,9,4\n"));
    let mut trace = read(text).expect("valid");
    let written = String::from_utf8(write_trace(&trace)).expect("text");
    assert!(written.contains("# step-unit: ns\n") && written.contains("\nb,7,9,4\n"), "{written}");
    trace.labels.buffers[1].original_steps = None;
    let written = String::from_utf8(write_trace(&trace)).expect("text");
    assert!(!written.contains("step-unit") && written.contains("\nb,1,2,4\n"), "{written}");
}

#[test]
fn alignment_metadata_round_and_columns_do_not() {
    let trace =
        read("# alignment: 512\nid,lower,upper,size,alignment\na,0,2,5,\nb,0,2,600,64\n").expect("valid");
    let of = |id: usize| {
        let buffer = &trace.instance.buffers()[id];
        (buffer.size.get(), buffer.align.get(), trace.labels.buffers[id].requested.map(|b| b.get()))
    };
    assert_eq!([of(0), of(1)], [(512, 512, Some(5)), (1024, 64, Some(600))]);
    let options = ReadOptions { alignment: Alignment::new(64), ..ReadOptions::default() };
    let trace =
        read_trace("t.csv", b"# alignment: 512\nid,lower,upper,size\na,0,2,5\n", &options).expect("valid");
    assert_eq!(trace.instance.buffers()[0].size.get(), 64);
    assert_eq!(trace.labels.meta_value("alignment"), Some("64"));
}

#[test]
fn an_id_may_come_again_after_its_free() {
    let text =
        "step,event,id,size,stream,op\n0,alloc,x,4,0,f\n2,free,x,4,0,\n2,alloc,x,8,0,g\n3,alloc,y,1,1,h\n";
    let trace = read(text).expect("valid");
    let names: Vec<&str> = trace.labels.buffers.iter().map(|label| label.name.as_str()).collect();
    let lives: Vec<(u32, u32)> = trace.instance.buffers().iter().map(|b| b.live.into()).collect();
    assert_eq!(names, ["x", "x#2", "y"]);
    assert_eq!(lives, [(0, 2), (2, 4), (3, 4)]);
    assert_eq!(trace.labels.buffers[1].op.as_deref(), Some("g"));
}

#[test]
fn plans_that_are_wrong() {
    let trace = read(rows("a,0,2,4\nb,0,2,5\n")).expect("valid");
    let plan = |text: &str| read_plan("p.csv", text.as_bytes(), &trace);
    for (text, message) in [
        ("id,size\n", "p.csv:1: missing column `offset`; the header has `id`, `size`"),
        ("id,offset\na,0\na,4\n", "p.csv:3: buffer `a` has an offset already"),
        ("id,offset\na,0\nc,4\n", "p.csv:3: `c` is no buffer of the trace"),
        ("id,offset\na,0\nb,\n", "p.csv:3: buffer `b` has no offset"),
        ("id,offset\na,0\nb,x\n", "p.csv:3: offset `x` is not a whole number"),
        (
            "id,offset\na,0\nb,18446744073709551616\n",
            "p.csv:3: offset 18446744073709551616 does not fit 64 bits",
        ),
        ("id,offset,size\na,0,4\nb,4,6\n", "p.csv:3: the size is 6 here, but 5 in the trace"),
        ("id,offset,overwrites\na,0,\nb,0,c\n", "p.csv:3: `c` is no buffer of the trace"),
        (
            "id,lower,upper,offset\na,0,2,0\nb,1,2,4\n",
            "p.csv:3: the life is [1, 2) here, but [0, 2) in the trace",
        ),
        ("id,upper,offset\na,3,0\nb,2,4\n", "p.csv:2: the life is [0, 3) here, but [0, 2) in the trace"),
        (
            "id,start,end,offset\na,0,1,0\nb,0,2,4\n",
            "p.csv:3: the life is [0, 3) here, but [0, 2) in the trace",
        ),
        ("", "p.csv:1: the file is empty: there is no header line"),
    ] {
        assert_eq!(plan(text).expect_err(message).to_string(), message);
    }
    // Lies that the verifier finds.
    for (text, kind) in [
        ("id,offset\na,0\n", "wrong-count"),
        ("id,offset\na,0\nb,4\nc,9\n", "wrong-count"),
        ("id,offset\na,0\nb,18446744073709551615\n", "overflow"),
        ("id,offset\nb,3\na,0\n", "overlap"),
    ] {
        let violation = trace.instance.verify(plan(text).expect(text)).expect_err(text);
        assert_eq!(violation.kind(), kind, "{text}");
    }
    let good = plan("id,offset\nb,4\na,0\n").expect("any order");
    assert_eq!(trace.instance.verify(good).expect("valid").height().get(), 9);
}

#[test]
fn a_plan_may_have_ranked_steps_or_the_files_own() {
    let trace = read(rows("a,5000000000,9000000001,4\nb,9000000000,9999999999,4\n")).expect("valid");
    let plan = |rows: &str| read_plan("p.csv", format!("id,lower,upper,offset\n{rows}").as_bytes(), &trace);
    assert!(plan("a,0,2,0\nb,1,3,4\n").is_ok());
    assert!(plan("a,5000000000,9000000001,0\nb,9000000000,9999999999,4\n").is_ok());
    assert_eq!(
        plan("a,0,2,0\nb,1,4,4\n").expect_err("another end").reason(),
        "the life is [1, 4) here, but [9000000000, 9999999999) in the trace"
    );
}

#[test]
fn ids_that_a_plan_and_its_trace_do_not_share_are_named() {
    let trace = read(rows(&(0..9).map(|id| format!("b{id},0,2,4\n")).collect::<String>())).expect("valid");
    let compare = |text: &str| {
        let rows = PlanFile::read_rows("p.csv", text.as_bytes(), InputLimits::default()).expect(text);
        rows.unmatched_ids(&trace)
    };
    let found = compare("id,offset\nb8,0\nc,4\nb8,8\n");
    assert_eq!(found.missing.len(), 8);
    assert_eq!(found.extra, ["c", "b8"]);
    assert_eq!(
        found.to_string(),
        "no row for `b0`, `b1`, `b2`, `b3`, `b4` and 3 more; one too many for `c`, `b8`"
    );
    let whole: String = (0..9).map(|id| format!("b{id},{}\n", 4 * id)).collect();
    assert!(compare(&format!("id,offset\n{whole}")).is_empty());
}

#[test]
fn what_minimalloc_cannot_say_is_refused() {
    for (text, what) in [
        ("# arena a: 100\nid,lower,upper,size\nx,0,1,4\n", "arena"),
        ("id,lower,upper,size,apart\nx,0,1,4,\ny,1,2,4,x\n", "kept apart"),
        ("id,lower,upper,size,offset\nx,0,1,4,0\ny,1,2,4,\n", "pinned"),
        ("id,lower,upper,size\nx,0,1,9223372036854775808\n", "2^63"),
    ] {
        let error = write_minimalloc(&read(text).expect("valid")).expect_err(what);
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn minimalloc_gets_plain_rows() {
    let text = "# alignment: 8\nid,lower,upper,size,gaps,category\na,0,9,5,2-4@0:3,x\n\"b,c\",1,3,16,,y\n";
    let written = write_minimalloc(&read(text).expect("valid")).expect("can be said");
    assert_eq!(
        String::from_utf8(written).expect("text"),
        "id,lower,upper,size,alignment,gaps\n0,0,9,8,8,2-4@0:3\n1,1,3,16,8,\n"
    );
}

#[test]
fn a_written_plan_says_what_it_is() {
    let trace = read("id,lower,upper,size,may_overwrite\na,0,2,4,\nb,1,3,4,a\n").expect("valid");
    let plan =
        planlab_dsa::Plan { offsets: vec![Offset::new(8); 2], in_place: trace.instance.in_place().to_vec() };
    let written = write_plan(&trace, &plan);
    assert_eq!(
        String::from_utf8_lossy(&written),
        "# planlab: plan\nid,lower,upper,size,offset,may_overwrite,overwrites\na,0,2,4,8,,\nb,1,3,4,8,a,a\n"
    );
    assert_eq!(read_plan("p.csv", &written, &trace), Ok(plan));
}
