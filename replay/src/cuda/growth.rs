//! Puts memory under a range, piece by piece: all of it, or nothing.

use super::driver::DriverError;

/// What a driver does for each piece. A piece is named by its first address.
pub(super) trait Growth {
    /// Takes memory for a piece and maps it; if that fails, the piece has none.
    fn put(&mut self, at: u64) -> Result<(), DriverError>;

    /// Lets kernels access all pieces, once they are mapped.
    fn allow(&mut self) -> Result<(), DriverError>;

    /// Takes the memory of an unused piece away again.
    fn take(&mut self, at: u64);
}

/// Puts memory under `count` pieces of `bytes` bytes, from `first` on. If a piece gets no memory, or kernels get no
/// access, the pieces before it go back, and the first error is returned.
pub(super) fn grow(growth: &mut impl Growth, first: u64, bytes: u64, count: u64) -> Result<(), DriverError> {
    let mut done = 0;
    let mut end = Ok(());
    while done < count && end.is_ok() {
        end = growth.put(first + done * bytes);
        done += u64::from(end.is_ok());
    }
    let end = end.and_then(|()| growth.allow());
    if end.is_err() {
        (0..done).rev().for_each(|piece| growth.take(first + piece * bytes));
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the calls, and refuses the given one.
    #[derive(Default)]
    struct Noted {
        calls: Vec<String>,
        refuses: &'static str,
    }

    impl Noted {
        fn note(&mut self, call: String) -> Result<(), DriverError> {
            let is_refused = call == self.refuses;
            self.calls.push(call);
            if is_refused { Err(DriverError::failed("noted", self.refuses)) } else { Ok(()) }
        }
    }

    impl Growth for Noted {
        fn put(&mut self, at: u64) -> Result<(), DriverError> {
            self.note(format!("put {at}"))
        }

        fn allow(&mut self) -> Result<(), DriverError> {
            self.note("allow".to_owned())
        }

        fn take(&mut self, at: u64) {
            self.calls.push(format!("take {at}"));
        }
    }

    #[test]
    fn what_cannot_be_had_whole_goes_back() {
        for (refuses, calls) in [
            ("", "put 100, put 110, put 120, allow"),
            ("put 120", "put 100, put 110, put 120, take 110, take 100"),
            ("put 100", "put 100"),
            ("allow", "put 100, put 110, put 120, allow, take 120, take 110, take 100"),
        ] {
            let mut noted = Noted { refuses, ..Noted::default() };
            let end = grow(&mut noted, 100, 10, 3);
            let expected =
                if refuses.is_empty() { Ok(()) } else { Err(DriverError::failed("noted", refuses)) };
            assert_eq!((end, noted.calls.join(", ").as_str()), (expected, calls));
        }
    }
}
