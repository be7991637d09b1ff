//! Memory under a range, piece by piece: all of it, or nothing.

use super::driver::DriverError;

/// What a driver does for each piece. Pieces are known by their first addresses.
pub(super) trait Growth {
    /// Takes memory for a piece and puts it there; where that fails, the piece has none.
    fn put(&mut self, at: u64) -> Result<(), DriverError>;

    /// Lets kernels reach all of the pieces, once they are there.
    fn allow(&mut self) -> Result<(), DriverError>;

    /// Takes the memory of a piece away again. Nobody has used it.
    fn take(&mut self, at: u64);
}

/// Puts memory under `count` pieces of `bytes` bytes, from the first on. Where one has none, or where kernels may not
/// reach them, those before it go back, and what failed first is said.
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

    /// Notes what is asked, and refuses what it is told to.
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
