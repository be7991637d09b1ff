use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use planlab_dsa::{BufferId, Bytes, InPlace, Instance, Labels, LiveRange, Pause, Step};
use serde_json::Value as Json;

use super::{CallStacks, Panel, SCRIPT, STYLE, Scene, ViewerPart, viewer_html};
use crate::ShowPage;
use crate::data::instances::own::{Held, OwnPlacement};
use crate::data::schedules::track::{PlacedBuffer, ScheduleTrack, StreamEvent};
use crate::figures::samples::{self, buffer};

/// What the script does with packed numbers.
fn unpacked(packed: &Json) -> Vec<u64> {
    let data = BASE64_STANDARD.decode(packed["data"].as_str().expect("is text")).expect("is base64");
    let width = match packed["type"].as_str() {
        Some("u8") => 1,
        Some("u16") => 2,
        Some("u32") => 4,
        other => panic!("{other:?}"),
    };
    let unit = packed["unit"].as_u64().expect("a number");
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    data.chunks_exact(width).map(|bytes| unit * number(bytes)).collect()
}

/// 400 buffers; some pause or keep a window.
fn instance() -> Instance {
    let buffer = |number: u32| {
        let buffer = buffer(u64::from(number % 7 + 1) * 512, number, number + 9);
        let steps = LiveRange::new(number + 2, number + 4).expect("not empty");
        let pause = |window| Pause { steps, window };
        match number % 50 {
            3 => buffer.with_pauses([pause(None)]),
            4 => buffer.with_pauses([pause(Some(Bytes::ZERO..Bytes::new(512)))]),
            _ => buffer,
        }
    };
    Instance::from_buffers((0..400).map(buffer).collect()).expect("valid")
}

fn labels() -> Labels {
    let mut labels = Labels::from_numbers(400);
    labels.buffers[1].name = "</script><img src=x>".to_owned();
    labels.buffers[2].category = Some("gradient".to_owned());
    labels.buffers[5].category = Some("gradient".to_owned());
    labels.buffers[5].op = Some("conv".to_owned());
    labels.buffers[6].requested = Some(Bytes::new(3));
    labels.buffers[7].original_steps = Some((70_000, 90_000));
    labels
}

fn data(part: &ViewerPart) -> Json {
    let page = viewer_html(part).into_string();
    let (_, rest) = page.split_once("type=\"application/json\">").expect("has data");
    let (text, _) = rest.split_once("</script>").expect("ends");
    serde_json::from_str(text).expect("is JSON")
}

#[test]
fn the_page_has_all_of_the_buffers() {
    let (instance, labels) = (instance(), labels());
    let offsets: Vec<u64> = (0..400).map(|number| number * 4096).collect();
    let plan = samples::plan(&instance, &offsets);
    let places: Vec<Option<u64>> =
        (0..400).map(|number| (number != 9).then_some((number % 16) << 40)).collect();
    let held = vec![Held { address: 3 << 40, size: 1 << 20, steps: (4, 9) }];
    let own = OwnPlacement::new("PyTorch", places, held);
    let frames = ["a.py:1 f".to_owned(), "b.py:2 g".to_owned()];
    let of: Vec<Option<u32>> = (0..400).map(|number| (number == 8).then_some(0)).collect();
    let panels = vec![Panel::from_framework(&instance, &own), Panel::from_plan("ours", &instance, &plan)];
    let stacks = CallStacks::new(&frames, vec![&[1, 0]], &of);
    let scene = Scene {
        panels,
        stacks,
        bound: Some(77),
        ..Scene::new(Cow::Borrowed(&instance), Cow::Borrowed(&labels))
    };
    let data = data(&ViewerPart::new(&scene, "caption"));

    let pieces: Vec<_> = instance
        .ids()
        .flat_map(|id| instance.buffer(id).active_pieces().map(move |piece| (id, piece)))
        .collect();
    assert!(pieces.len() > 408, "{} with pauses", pieces.len());
    let all = |group: &str, name: &str| unpacked(&data[group][name]);
    let expected = |number: &dyn Fn(usize) -> u64| (0..pieces.len()).map(number).collect::<Vec<u64>>();
    let step = |step: Step| u64::from(step.get());
    assert_eq!(all("pieces", "of"), expected(&|at| pieces[at].0.index() as u64));
    assert_eq!(all("pieces", "start"), expected(&|at| step(pieces[at].1.steps.start())));
    assert_eq!(all("pieces", "end"), expected(&|at| step(pieces[at].1.steps.end())));
    let window = |at: usize| pieces[at].1.window.clone();
    assert_eq!(all("pieces", "size"), expected(&|at| window(at).end.get() - window(at).start.get()));
    let lows = unpacked(&data["panels"][1]["low"]);
    assert_eq!(lows, expected(&|at| offsets[pieces[at].0.index()] + window(at).start.get()));

    let buffers = &data["buffers"];
    assert_eq!(all("buffers", "size"), instance.buffers().iter().map(|b| b.size.get()).collect::<Vec<_>>());
    assert_eq!(buffers["names"][1], "</script><img src=x>");
    assert_eq!(buffers["categories"], serde_json::json!(["gradient"]));
    let said =
        |name: &str| all("buffers", name).into_iter().enumerate().filter(|(_, n)| *n > 0).collect::<Vec<_>>();
    assert_eq!(
        (said("category"), said("op"), said("stack")),
        (vec![(2, 1), (5, 1)], vec![(5, 1)], vec![(8, 1)])
    );
    assert_eq!((all("buffers", "requested")[6], all("buffers", "requested")[7]), (3, 512));
    assert_eq!(
        (all("buffers", "from")[7], all("buffers", "to")[7], all("buffers", "from")[8]),
        (70_000, 90_000, 8)
    );
    assert_eq!(
        (&buffers["stacks"][0], &buffers["frames"][1]),
        (&serde_json::json!([1, 0]), &"b.py:2 g".into())
    );

    let own = &data["panels"][0];
    let absent: Vec<u64> =
        own["absent"].as_array().expect("a list").iter().filter_map(Json::as_u64).collect();
    let is_absent = |&at: &u64| usize::try_from(at).is_ok_and(|at| pieces[at].0.index() == 9);
    assert!(!absent.is_empty() && absent.iter().all(is_absent), "{absent:?}");
    // Sixteen ranges far from each other lie side by side: what lies in the third begins where two of at most 3584 bytes end.
    assert!(own["height"].as_u64().is_some_and(|height| height < 2 << 20), "{}", own["height"]);
    assert_eq!((unpacked(&own["held"]["start"]), unpacked(&own["held"]["end"])), (vec![4], vec![9]));
    assert_eq!((&data["bound"], data["horizon"].as_u64()), (&77.into(), Some(408)));
}

#[test]
fn plain_buffers_leave_out_what_says_nothing() {
    let instance = samples::instance(&[(8, 0, 2)]);
    let labels = Labels::from_numbers(1);
    let panels = vec![Panel::without_reuse(&instance)];
    let scene = Scene { panels, ..Scene::new(Cow::Borrowed(&instance), Cow::Borrowed(&labels)) };
    let data = data(&ViewerPart::new(&scene, ""));
    assert!(data["pieces"]["of"].is_null());
    for name in ["names", "category", "op", "requested", "from", "to", "stack"] {
        assert!(data["buffers"][name].is_null(), "{name}");
    }
}

/// A map that is written and copied out.
fn track() -> ScheduleTrack {
    let forward =
        StreamEvent { task: "forward", of: "0".to_owned(), bytes: 8, end_ns: 10, ..StreamEvent::default() };
    let copy = StreamEvent {
        stream: 1,
        task: "copy-out",
        of: "3".to_owned(),
        start_ns: 10,
        end_ns: 40,
        after: [Some(0), None, None],
        ..forward.clone()
    };
    let map = PlacedBuffer {
        name: "map 3".to_owned(),
        kind: "copied",
        bytes: 8,
        offset: 2,
        end_ns: 40,
        writer: Some(0),
        ..PlacedBuffer::default()
    };
    ScheduleTrack {
        name: "s.jsonl".to_owned(),
        base: 2,
        capacity: Some(99),
        memory: vec![(0, 10), (5, 70), (5, 10), (40, 2)],
        peak: (70, 5),
        height: 10,
        iteration_ns: 40,
        events: vec![forward, copy],
        buffers: vec![map],
        ..ScheduleTrack::default()
    }
}

#[test]
fn schedule_has_streams_and_its_base_as_a_buffer() {
    let part = ViewerPart::from_track(&track(), 50, 1, "caption");
    let data = data(&part);
    let pieces = ["start", "end", "size"].map(|name| unpacked(&data["pieces"][name]));
    assert_eq!(pieces, [vec![0, 0], vec![40, 40], vec![2, 8]]);
    assert_eq!(unpacked(&data["panels"][0]["low"]), [0, 2]);
    assert_eq!(data["buffers"]["categories"], serde_json::json!(["reserved", "copied"]));
    assert_eq!(unpacked(&data["buffers"]["writer"]), [0, 1]);
    assert_eq!(data["buffers"]["ops"], serde_json::json!(["forward 0", "copy-out 3"]));
    let streams = &data["streams"];
    let numbers = ["stream", "start", "end", "with"].map(|name| unpacked(&streams[name]));
    assert_eq!(numbers, [vec![0, 1], vec![0, 10], vec![10, 40], vec![0, 0]]);
    assert_eq!(unpacked(&streams["after"]), [0, 0, 0, 1, 0, 0]);
    let colors = data["colors"]["light"]["categories"].as_array().expect("a list");
    assert_eq!(colors.len(), 2 + streams["tasks"].as_array().expect("a list").len());
    let page = viewer_html(&part).into_string();
    assert!(page.contains("In use at this time") && page.contains("max=\"49\" step=\"1\""), "{page}");
    let second = viewer_html(&ViewerPart::from_track(&track(), 1_000_000_000, 1, "caption")).into_string();
    assert!(second.contains("max=\"999999999\" step=\"1000000\""), "a thousandth of the axis: {second}");
}

#[test]
fn schedule_curve_tops_at_the_peak_of_an_instant() {
    let data = data(&ViewerPart::from_track(&track(), 50, 1, "caption"));
    assert_eq!(unpacked(&data["curve"]["at"]), [0, 5, 5, 40, 40]);
    assert_eq!(unpacked(&data["curve"]["bytes"]), [10, 70, 10, 2, 0]);
    assert_eq!(data["load"], serde_json::json!({ "bytes": 70, "step": 5 }));
    assert!(SCRIPT.contains("model.curve = data.curve ? unpacked(data.curve) : curveOf(model);"));
}

/// Every step that is said is one of the file, whose 300 is the third of the ranks.
#[test]
fn there_is_one_clock_on_a_page() {
    let instance = samples::instance(&[(8, 0, 1), (8, 1, 3), (16, 2, 3)]);
    let mut labels = Labels::from_numbers(3);
    for (label, steps) in labels.buffers.iter_mut().zip([(100, 200), (200, 400), (300, 400)]) {
        label.original_steps = Some(steps);
    }
    let plan = samples::plan(&instance, &[0, 40, 8]);
    let page = ShowPage::new(&instance, &labels, "t", "c").with_plan("ours", &plan).to_html().expect("drawn");
    let (_, words) = page.split_once("</figure>").expect("a viewer");
    for said in ["in use from step 200 to 400", "At step 300,", "in use at step 300, the peak", "free"] {
        assert!(page.contains(said), "{said}: {words}");
    }
    assert!(page.contains("24 B (24 bytes) at step 300"));
    assert!(!words.contains("step 2 ") && !words.contains("step 2,"), "{words}");
}

#[test]
fn the_script_asks_for_nothing_outside_of_the_page() {
    for word in
        ["http", "fetch(", "XMLHttpRequest", "import(", "import ", "@import", "url(", "eval(", "innerHTML"]
    {
        assert!(!SCRIPT.contains(word) && !STYLE.contains(word), "{word}");
    }
}

#[test]
fn paper_gets_a_light_map_with_its_colours_and_without_controls() {
    assert!(SCRIPT.contains("[\"beforeprint\", true]") && SCRIPT.contains("theme.matches && !isPrinted"));
    let (screen, print) = STYLE.split_once("@media print").expect("a style for paper");
    assert!(screen.contains(".viewer .controls { display: flex"), "what is hidden later is shown first");
    assert!(print.contains(".viewer .controls,") && print.contains("display: none"), "{print}");
    assert!(print.contains(".viewer .keys i, .viewer canvas { print-color-adjust: exact"), "{print}");
}

/// An output that is written into its input, of the same size, and a buffer beside them.
fn handed_over() -> Instance {
    let permission = InPlace { input: BufferId::new(0), output: BufferId::new(1) };
    let buffers = [buffer(64, 0, 3), buffer(64, 2, 5), buffer(16, 3, 4)];
    Instance::builder().buffers(buffers).in_place([permission]).build().expect("valid")
}

#[test]
fn pieces_that_may_overwrite_count_from_their_second_step() {
    let instance = handed_over();
    let labels = Labels::from_numbers(3);
    let scene = Scene::new(Cow::Borrowed(&instance), Cow::Borrowed(&labels));
    let data = data(&ViewerPart::new(&scene, "caption"));
    let [start, counted, end, size] =
        ["start", "counted", "end", "size"].map(|name| unpacked(&data["pieces"][name]));
    assert_eq!((start, &counted), (vec![0, 2, 3], &vec![0, 3, 3]));
    let curve = instance.load_curve();
    for step in 0..6_u32 {
        let is_in_use = |&piece: &usize| (counted[piece]..end[piece]).contains(&u64::from(step));
        let used: u64 = (0..3).filter(is_in_use).map(|piece| size[piece]).sum();
        assert_eq!(used, curve.load_at(Step::new(step)).get(), "step {step}");
    }
    assert!(SCRIPT.contains("steps.set(counted)"), "the curve starts there");
}
