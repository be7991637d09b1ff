//! The functions that C calls, and all that this crate does with pointers.
//!
//! A pointer is looked at once: whether it is null where it must not be, and whether it is aligned. What it points to
//! is the caller's promise. What was read is copied before a plan is made, so that columns of a call may be the same
//! memory, and offsets may be written over what was read.
#![allow(unsafe_code, reason = "pointers of C")]
#![allow(rustdoc::broken_intra_doc_links, reason = "comments that are the header's, too")]

use std::ffi::{c_char, c_int};
use std::mem::{offset_of, size_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::time::Instant;

use planlab_dsa::Columns;

use crate::question::{PlanAnswer, Question};
use crate::types::{
    PLANLAB_ABI_VERSION, PLANLAB_MESSAGE_SIZE, planlab_options, planlab_result, planlab_status,
};

/// The version of the interface that the library has; compare it with PLANLAB_ABI_VERSION, which is the header's.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_abi_version() -> u32 {
    PLANLAB_ABI_VERSION
}

/// A status in words: English, for ever valid, never null; also for numbers that are no status.
#[unsafe(no_mangle)]
pub extern "C" fn planlab_status_text(status: c_int) -> *const c_char {
    let known = planlab_status::TEXTS.into_iter().find(|(known, _)| *known as c_int == status);
    known.map_or(c"no status of this library", |(_, text)| text).as_ptr()
}

/// Gives each of count buffers an offset.
///
/// Buffer i is live at the steps lower[i] <= step < upper[i] and has sizes[i] bytes. Steps are any numbers that are in
/// order: operations, or nanoseconds. If there is a plan, offsets[i] is where buffer i begins in the arena, in bytes;
/// else nothing is written to offsets.
///
/// options and result may be null. The arrays may be null if count is 0. They have to hold count numbers, and nobody
/// may write to them during the call; offsets may be one of them.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "the comment is the header's, and says what a caller promises")]
pub unsafe extern "C" fn planlab_plan(
    count: usize,
    lower: *const i64,
    upper: *const i64,
    sizes: *const u64,
    options: *const planlab_options,
    offsets: *mut u64,
    result: *mut planlab_result,
) -> planlab_status {
    let begin = Instant::now();
    // SAFETY: the caller's promise.
    let size = match unsafe { struct_size(result, "result") } {
        Ok(size) => size,
        // There is no place to say more.
        Err(refusal) => return refusal.status,
    };
    let call = Call { count, lower, upper, sizes, options, offsets };
    // SAFETY: the caller's promise.
    let planned = catch_unwind(AssertUnwindSafe(|| unsafe { call.ask_planner() }));
    let panicked = |_| refuse_call(planlab_status::PLANLAB_ERROR_FAILED, "the planner panicked".to_owned());
    let answer = planned.unwrap_or_else(panicked).unwrap_or_else(|refusal| refusal);
    for (at, offset) in answer.offsets.iter().enumerate() {
        // SAFETY: `ask_planner` checked the pointer, and the caller promises that it holds `count` numbers.
        unsafe { offsets.add(at).write(offset.get()) };
    }
    if let Some(size) = size {
        // SAFETY: it is neither null nor misaligned, and its size is not smaller than what is written.
        unsafe { result.write(fill_result(&answer, size, begin)) };
    }
    answer.status
}

/// The pointers of a call, not looked at yet.
struct Call {
    count: usize,
    lower: *const i64,
    upper: *const i64,
    sizes: *const u64,
    options: *const planlab_options,
    offsets: *mut u64,
}

impl Call {
    /// # Safety
    ///
    /// Each pointer that is not null points to what `planlab_plan` asks for.
    unsafe fn ask_planner(&self) -> Result<PlanAnswer, PlanAnswer> {
        // SAFETY: the caller's promise, here and below.
        let options = unsafe { read_options(self.options) }?;
        let count = self.count;
        check_pointer(self.offsets, count, "offsets")?;
        let columns = Columns {
            lower: unsafe { read_column(self.lower, count, "lower") }?,
            upper: unsafe { read_column(self.upper, count, "upper") }?,
            size: unsafe { read_column(self.sizes, count, "sizes") }?,
            align: unsafe { read_optional(options.alignments, count, "options.alignments") }?,
            pin: unsafe { read_optional(options.pins, count, "options.pins") }?,
        };
        let planner = unsafe { read_text(options.planner) }?;
        Question { columns, options, planner }.find_answer()
    }
}

fn refuse_call<T>(status: planlab_status, message: String) -> Result<T, PlanAnswer> {
    Err(PlanAnswer::without_plan(status, message))
}

/// Checks a pointer to `count` values.
fn check_pointer<T>(pointer: *const T, count: usize, name: &str) -> Result<(), PlanAnswer> {
    if count == 0 {
        return Ok(());
    }
    if u32::try_from(count).is_err() || count.checked_mul(size_of::<T>()).is_none_or(|size| size > MOST_BYTES)
    {
        let message = format!("{count} buffers are more than there can be (4294967295)");
        return refuse_call(planlab_status::PLANLAB_ERROR_TOO_MANY, message);
    }
    if pointer.is_null() {
        return refuse_call(planlab_status::PLANLAB_ERROR_NULL, format!("{name} is null"));
    }
    if !pointer.is_aligned() {
        return refuse_call(planlab_status::PLANLAB_ERROR_MISALIGNED, format!("{name} is not aligned"));
    }
    Ok(())
}

/// The most bytes of a slice.
const MOST_BYTES: usize = isize::MAX.unsigned_abs();

/// # Safety
///
/// The pointer is null, misaligned, or points to `count` values that nobody writes to meanwhile.
unsafe fn read_column<'c, T>(pointer: *const T, count: usize, name: &str) -> Result<&'c [T], PlanAnswer> {
    check_pointer(pointer, count, name)?;
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: checked; the rest is the caller's promise.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// # Safety
///
/// As [`read_column`].
unsafe fn read_optional<'c, T>(
    pointer: *const T,
    count: usize,
    name: &str,
) -> Result<Option<&'c [T]>, PlanAnswer> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { read_column(pointer, count, name) }.map(Some)
}

/// The longest key of a planner that is read.
const LONGEST_KEY: usize = 255;

/// A string up to its terminating 0; `None` if it is null.
///
/// # Safety
///
/// It is null, or ends with a 0 or has at least [`LONGEST_KEY`] + 1 bytes.
unsafe fn read_text<'c>(pointer: *const c_char) -> Result<Option<&'c [u8]>, PlanAnswer> {
    if pointer.is_null() {
        return Ok(None);
    }
    let bytes = pointer.cast::<u8>();
    // SAFETY: no byte behind the first 0 is read.
    match (0..=LONGEST_KEY).find(|&at| unsafe { *bytes.add(at) } == 0) {
        // SAFETY: they have been read.
        Some(length) => Ok(Some(unsafe { slice::from_raw_parts(bytes, length) })),
        None => refuse_call(
            planlab_status::PLANLAB_ERROR_PLANNER,
            format!("the planner's key has more than {LONGEST_KEY} bytes"),
        ),
    }
}

const _: () = assert!(offset_of!(planlab_options, struct_size) == 0);
const _: () = assert!(offset_of!(planlab_result, struct_size) == 0);

/// No struct grows so large: such a size was never set.
const MOST_SIZE: usize = 4096;

/// What a struct says of its size, checked; `None` if it is null.
///
/// # Safety
///
/// It is null, misaligned, or points to a struct that begins with its size.
unsafe fn struct_size<T>(pointer: *const T, name: &str) -> Result<Option<usize>, PlanAnswer> {
    if pointer.is_null() {
        return Ok(None);
    }
    check_pointer(pointer, 1, name)?;
    // SAFETY: the size is the first field.
    let size = unsafe { ptr::read(pointer.cast::<usize>()) };
    if (size_of::<T>()..=MOST_SIZE).contains(&size) {
        return Ok(Some(size));
    }
    let message = format!("{name}.struct_size is {size}; it has to be sizeof(planlab_{name})");
    refuse_call(planlab_status::PLANLAB_ERROR_STRUCT_SIZE, message)
}

/// The options, or the default if they are null. What a later version added has to be 0.
///
/// # Safety
///
/// As [`struct_size`], and the struct has that size.
unsafe fn read_options(pointer: *const planlab_options) -> Result<planlab_options, PlanAnswer> {
    // SAFETY: the caller's promise.
    let Some(size) = (unsafe { struct_size(pointer, "options") })? else {
        return Ok(planlab_options::default());
    };
    let own = size_of::<planlab_options>();
    // SAFETY: the caller has said that there are `size` bytes, which are not fewer than `own`.
    let later = unsafe { slice::from_raw_parts(pointer.cast::<u8>().add(own), size - own) };
    if later.iter().any(|&byte| byte != 0) {
        let message = "an option is set that this version of the library does not know";
        return refuse_call(planlab_status::PLANLAB_ERROR_OPTION, message.to_owned());
    }
    // SAFETY: any bits are numbers and pointers.
    Ok(unsafe { ptr::read(pointer) })
}

fn fill_result(answer: &PlanAnswer, struct_size: usize, begin: Instant) -> planlab_result {
    planlab_result {
        struct_size,
        height: answer.height.get(),
        bound: answer.bound.get(),
        load: answer.load.get(),
        seconds: begin.elapsed().as_secs_f64(),
        buffer: answer.buffer.map_or(u64::MAX, |buffer| buffer.get().into()),
        message: message_text(&answer.message),
    }
}

/// A text that ends with 0, cut where it is too long, between two characters.
fn message_text(text: &str) -> [c_char; PLANLAB_MESSAGE_SIZE] {
    let mut message = [0; PLANLAB_MESSAGE_SIZE];
    let end = text.floor_char_boundary(PLANLAB_MESSAGE_SIZE - 1);
    for (to, from) in message.iter_mut().zip(text[..end].bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    message
}
