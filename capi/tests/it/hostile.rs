//! Callers that break the rules: each gets an error that says which, and nothing is written.
#![allow(unsafe_code, reason = "calls as C makes them")]

use std::ffi::{CStr, CString, c_char};
use std::mem::size_of;
use std::ptr;

use planlab_c::planlab_status::*;
use planlab_c::{
    PLANLAB_ABI_VERSION, planlab_abi_version, planlab_options, planlab_result, planlab_status,
    planlab_status_text,
};

use crate::call::{Problem, Raw, Row, Told, UNTOUCHED};

fn fine() -> Problem {
    Problem::new(&[(0, 3, 4096), (1, 2, 1024), (2, 5, 4096)])
}

/// Asserts that a call was refused, with a message that holds `word`, and that nothing was written.
fn assert_refused(told: &Told, status: planlab_status, word: &str) {
    assert_eq!(told.status, status, "{word}: {}", told.message());
    assert!(told.message().contains(word), "`{}` lacks `{word}`", told.message());
    assert!(told.is_untouched(), "{word}");
    assert_eq!((told.result.height, told.result.bound), (0, 0), "{word}");
}

/// Calls with arguments that `spoil` has changed; offsets have to stay as they are.
fn spoilt(spoil: impl FnOnce(&mut Raw)) -> Told {
    let problem = fine();
    let mut offsets = [UNTOUCHED; 3];
    let options = planlab_options::default();
    let mut raw = Raw::new(&problem, &raw const options, offsets.as_mut_ptr());
    spoil(&mut raw);
    let told = raw.call();
    Told { offsets: offsets.to_vec(), ..told }
}

#[test]
fn null_pointers_are_named() {
    let null = PLANLAB_ERROR_NULL;
    assert_refused(&spoilt(|raw| raw.lower = ptr::null()), null, "lower is null");
    assert_refused(&spoilt(|raw| raw.upper = ptr::null()), null, "upper is null");
    assert_refused(&spoilt(|raw| raw.sizes = ptr::null()), null, "sizes is null");
    assert_refused(&spoilt(|raw| raw.offsets = ptr::null_mut()), null, "offsets is null");
}

#[test]
fn misaligned_pointers_are_named() {
    let bad = PLANLAB_ERROR_MISALIGNED;
    assert_refused(&spoilt(|raw| raw.lower = raw.lower.wrapping_byte_add(1)), bad, "lower");
    assert_refused(&spoilt(|raw| raw.sizes = raw.sizes.wrapping_byte_add(4)), bad, "sizes");
    assert_refused(&spoilt(|raw| raw.offsets = raw.offsets.wrapping_byte_add(7)), bad, "offsets");
    assert_refused(&spoilt(|raw| raw.options = raw.options.wrapping_byte_add(2)), bad, "options");
}

#[test]
fn counts_beyond_reason_are_refused_unread() {
    for count in [1 << 32, usize::MAX / 8, usize::MAX] {
        assert_refused(&spoilt(|raw| raw.count = count), PLANLAB_ERROR_TOO_MANY, &count.to_string());
    }
}

#[test]
fn no_buffers_need_no_arrays() {
    let nothing = Raw {
        count: 0,
        lower: ptr::null(),
        upper: ptr::null(),
        sizes: ptr::null(),
        options: ptr::null(),
        offsets: ptr::null_mut(),
    };
    let told = nothing.call();
    assert_eq!((told.status, told.result.height), (PLANLAB_OPTIMAL, 0), "{}", told.message());
}

#[test]
fn offsets_may_lie_over_what_is_read() {
    let problem = fine();
    let mut pins = vec![-1_i64, 8192, -1];
    let options = planlab_options { pins: pins.as_ptr(), ..planlab_options::default() };
    let over = pins.as_mut_ptr().cast::<u64>();
    let told = Raw::new(&problem, &raw const options, over).call();
    assert!(told.status.has_plan());
    assert_eq!((pins[1], told.result.height), (8192, 9216));
}

#[test]
fn a_result_is_not_needed_and_a_bad_one_not_written() {
    let problem = fine();
    let call = |result: *mut planlab_result| {
        let mut offsets = [UNTOUCHED; 3];
        let status = Raw::new(&problem, ptr::null(), offsets.as_mut_ptr()).call_into(result);
        (status, offsets.contains(&UNTOUCHED))
    };
    assert_eq!(call(ptr::null_mut()), (PLANLAB_OPTIMAL, false));
    let mut result = planlab_result::default();
    let result = &raw mut result;
    assert_eq!(call(result.wrapping_byte_add(4)), (PLANLAB_ERROR_MISALIGNED, true));
    for size in [0, 1, size_of::<planlab_result>() - 1, 4097, usize::MAX] {
        // SAFETY: the struct is there.
        unsafe { (*result).struct_size = size };
        assert_eq!(call(result), (PLANLAB_ERROR_STRUCT_SIZE, true), "{size}");
        // SAFETY: the struct is there.
        assert_eq!(unsafe { ((*result).height, (*result).buffer) }, (0, u64::MAX));
    }
}

/// Options of a later version: two words more.
#[repr(C)]
struct Later {
    options: planlab_options,
    more: [u64; 2],
}

#[test]
fn structs_of_other_versions_are_known_by_their_size() {
    let with = |struct_size, more| {
        let options = planlab_options { struct_size, ..planlab_options::default() };
        let later = Later { options, more };
        spoilt(|raw| raw.options = (&raw const later).cast())
    };
    let (own, whole) = (size_of::<planlab_options>(), size_of::<Later>());
    for size in [0, 1, own - 1, 4097, usize::MAX] {
        assert_refused(&with(size, [0, 0]), PLANLAB_ERROR_STRUCT_SIZE, "options.struct_size");
    }
    assert_eq!(with(own, [1, 1]).status, PLANLAB_OPTIMAL);
    assert_eq!(with(whole, [0, 0]).status, PLANLAB_OPTIMAL);
    assert_refused(&with(whole, [0, 1 << 63]), PLANLAB_ERROR_OPTION, "does not know");
}

#[test]
fn buffers_that_cannot_be_are_named() {
    let far = i64::MAX;
    let cases: [(&[Row], u64, &str); 6] = [
        (&[(0, 1, 1), (3, 3, 1)], 1, "live at steps [3, 3)"),
        (&[(4, 3, 1)], 0, "live at steps [4, 3)"),
        (&[(far, i64::MIN, 1)], 0, "lower must be below upper"),
        (&[(0, 1, 1), (0, 1, 1), (5, 6, 0)], 2, "its size is 0"),
        (&[(0, 1, u64::MAX), (4, 5, 1)], 1, "more than 2^64 - 1"),
        (&[(0, 1, u64::MAX), (4, 5, u64::MAX)], 1, "more than 2^64 - 1"),
    ];
    for (rows, buffer, word) in cases {
        let told = Problem::new(rows).plan(planlab_options::default(), None);
        assert_refused(&told, PLANLAB_ERROR_BUFFER, word);
        assert_eq!(told.buffer(), Some(buffer), "{word}");
    }
}

#[test]
fn alignments_and_pins_that_cannot_be_are_named() {
    let plan = |alignments: Option<[u64; 3]>, pins: Option<[i64; 3]>| {
        let (alignments, pins) = (alignments.map(Vec::from), pins.map(Vec::from));
        Problem { alignments, pins, ..fine() }.plan(planlab_options::default(), None)
    };
    let cases = [
        (plan(Some([1, 0, 1]), None), 1, "its alignment is 0"),
        (plan(Some([u64::MAX, 1, 1]), None), 0, "more than 2^64 - 1"),
        (plan(None, Some([-1, -2, -1])), 1, "pinned at offset -2"),
        (plan(None, Some([i64::MIN, -1, -1])), 0, "pinned at offset -9223372036854775808"),
        (plan(Some([1, 3, 1]), Some([-1, 4, -1])), 1, "not a multiple of its alignment 3"),
        (plan(None, Some([0, 4095, -1])), 1, "both are pinned"),
    ];
    for (told, buffer, word) in &cases {
        assert_refused(told, PLANLAB_ERROR_BUFFER, word);
        assert_eq!(told.buffer(), Some(*buffer), "{word}");
    }
}

#[test]
fn unusual_buffers_are_planned() {
    let defaults = planlab_options::default();
    let steps = Problem::new(&[(i64::MIN, 0, 8), (-1, i64::MAX, 8), (0, 1, 8)]).plan(defaults, None);
    assert_eq!((steps.status, steps.result.height), (PLANLAB_OPTIMAL, 16));
    // No alignment has to be a power of two.
    let odd = Problem { alignments: Some(vec![48, 7, 100]), ..fine() }.plan(defaults, None);
    assert!(odd.status.has_plan(), "{}", odd.message());
    let multiples = odd.offsets.iter().zip([48, 7, 100]).all(|(offset, align)| offset % align == 0);
    assert!(multiples, "{:?}", odd.offsets);
    let high = Problem { pins: Some(vec![i64::MAX, -1, -1]), ..fine() }.plan(defaults, None);
    assert_eq!((high.status, high.result.height), (PLANLAB_OPTIMAL, (1 << 63) + 4095));
}

#[test]
fn limits_out_of_range_are_refused() {
    let plan = |options| fine().plan(options, None);
    let options = planlab_options::default();
    for time_limit in [f64::NAN, -f64::NAN, -1.0, -f64::MIN_POSITIVE, f64::NEG_INFINITY] {
        assert_refused(&plan(planlab_options { time_limit, ..options }), PLANLAB_ERROR_OPTION, "time_limit");
    }
    for threads in [1025, u32::MAX] {
        assert_refused(&plan(planlab_options { threads, ..options }), PLANLAB_ERROR_OPTION, "threads");
    }
    assert_refused(&plan(planlab_options { flags: 1 << 31, ..options }), PLANLAB_ERROR_OPTION, "flags");
    for time_limit in [-0.0, 0.5, 1e300, f64::INFINITY] {
        assert_eq!(plan(planlab_options { time_limit, ..options }).status, PLANLAB_OPTIMAL, "{time_limit}");
    }
    // Too short for anything; a plan may come of it, an error may not.
    let told = plan(planlab_options { time_limit: 1e-300, ..options });
    assert!(told.status.has_plan() || told.status == PLANLAB_UNKNOWN, "{}", told.message());
}

#[test]
fn a_capacity_is_kept_or_refuted() {
    let with = |capacity, planner: Option<&CStr>| {
        fine().plan(planlab_options { capacity, ..planlab_options::default() }, planner)
    };
    let (fits, tight) = (with(8192, None), with(8191, None));
    assert_eq!((fits.status, fits.result.height), (PLANLAB_OPTIMAL, 8192));
    assert_eq!((tight.status, tight.result.height, tight.result.bound), (PLANLAB_INFEASIBLE, 0, 8192));
    assert!(tight.is_untouched() && tight.message().contains("every plan needs 8192 bytes"));
    // `bump` shares nothing, and does not know whether others could.
    let unknown = with(8192, Some(c"bump"));
    assert_eq!((unknown.status, unknown.result.height), (PLANLAB_UNKNOWN, 0));
    assert!(
        unknown.is_untouched() && unknown.message().contains("needs 9216 bytes"),
        "{}",
        unknown.message()
    );
}

#[test]
fn planners_that_there_are_not_are_refused() {
    let plan = |key: &CStr| fine().plan(planlab_options::default(), Some(key));
    let bad = PLANLAB_ERROR_PLANNER;
    assert_refused(&plan(c"best-fitt"), bad, "there is no planner `best-fitt`");
    assert_refused(&plan(c""), bad, "there is no planner ``");
    assert_refused(&plan(c"\xff\xfe"), bad, "not UTF-8");
    let endless = CString::new(vec![b'x'; 1000]).expect("no 0");
    assert_refused(&plan(&endless), bad, "more than 255 bytes");
    // A message is cut between two characters.
    let long = CString::new("ä".repeat(120)).expect("no 0");
    assert!(plan(&long).message().starts_with("there is no planner `ä"));
    assert_eq!(plan(c"best-fit").status, PLANLAB_OPTIMAL);
}

#[test]
fn what_a_planner_does_not_honour_is_said() {
    let pins = |key: &&String| {
        let planner = planlab_solvers::find_planner(key).expect("in the registry");
        !planner.descriptor().honours.pins
    };
    let keys = planlab_solvers::keys();
    let key = CString::new(keys.iter().find(pins).expect("not all honour pins").as_str()).expect("no 0");
    let pinned = Problem { pins: Some(vec![-1, -1, 0]), ..fine() };
    let told = pinned.plan(planlab_options::default(), Some(&key));
    assert_refused(&told, PLANLAB_ERROR_UNSUPPORTED, "pinned offsets");
}

#[test]
fn every_status_has_a_text_of_its_own() {
    let text = |status| {
        let text: *const c_char = planlab_status_text(status);
        // SAFETY: it is a constant that ends with 0.
        unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8").to_owned()
    };
    let mut texts: Vec<String> =
        planlab_status::TEXTS.iter().map(|(status, _)| text(*status as i32)).collect();
    let none = "no status of this library";
    assert!(!texts.iter().any(|text| text == none || text.is_empty()));
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), planlab_status::TEXTS.len());
    for number in [4, -10, i32::MIN, i32::MAX] {
        assert_eq!(text(number), none, "{number}");
    }
    assert_eq!(planlab_abi_version(), PLANLAB_ABI_VERSION);
}
