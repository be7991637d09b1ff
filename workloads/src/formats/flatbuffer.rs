//! Tables, vectors and strings of an untrusted flatbuffer: every access is checked, and what leaves the
//! file is an error with its byte.
//!
//! # References
//!
//! 1. FlatBuffers, "Internals": offsets, tables with their vtables, vectors.

/// What is wrong with a file, and at which byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) at: u64,
    pub(crate) reason: String,
}

impl Broken {
    pub(crate) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self { at: at as u64, reason: reason.into() }
    }
}

/// A table: its fields are found by number.
#[derive(Clone, Copy)]
pub(crate) struct Table<'b> {
    bytes: &'b [u8],
    at: usize,
}

/// How many bytes may still be read: what is far more than the file has is the same bytes again and again, by a trick.
pub(crate) struct ReadBudget {
    left: usize,
}

/// Bytes of the smallest table, with the offset that leads to it.
pub(crate) const TABLE: usize = 8;

impl ReadBudget {
    /// Nothing is read of a file yet.
    pub(crate) const fn from_bytes(bytes: &[u8]) -> Self {
        Self { left: bytes.len().saturating_mul(4) }
    }

    pub(crate) fn take_bytes(&mut self, bytes: usize, at: usize) -> Result<(), Broken> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| Broken::new(at, "its tables say more than the file has bytes for"))?;
        Ok(())
    }
}

/// Elements of a fixed width.
#[derive(Clone, Copy)]
pub(crate) struct Vector<'b> {
    bytes: &'b [u8],
    /// Of the first element.
    at: usize,
    len: usize,
}

fn read_array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Broken> {
    let array = bytes.get(at..).and_then(|rest| rest.first_chunk::<N>());
    array.copied().ok_or_else(|| Broken::new(at.min(bytes.len()), "the file ends before a value does"))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, Broken> {
    read_array(bytes, at).map(u32::from_le_bytes)
}

/// The place that an offset at a place leads to.
fn follow_offset(bytes: &[u8], at: usize) -> Result<usize, Broken> {
    let far = u32_at(bytes, at)? as usize;
    let to = at.checked_add(far).filter(|&to| far > 0 && to < bytes.len());
    to.ok_or_else(|| Broken::new(at, format!("an offset of {far} leads out of the file")))
}

impl<'b> Table<'b> {
    /// The table that the file begins with an offset to.
    pub(crate) fn root_table(bytes: &'b [u8]) -> Result<Self, Broken> {
        Ok(Self { bytes, at: follow_offset(bytes, 0)? })
    }

    /// Its byte in the file.
    pub(crate) const fn byte_offset(self) -> usize {
        self.at
    }

    /// The place of a field; none of one that is left out.
    pub(crate) fn field_offset(self, number: u16) -> Result<Option<usize>, Broken> {
        let vtable = self.vtable()?;
        let size = usize::from(u16::from_le_bytes(read_array(self.bytes, vtable)?));
        let slot = 4 + 2 * usize::from(number);
        if slot + 2 > size {
            return Ok(None);
        }
        match u16::from_le_bytes(read_array(self.bytes, vtable + slot)?) {
            0 => Ok(None),
            far => Ok(Some(self.at + usize::from(far))),
        }
    }

    /// The place that a field which is an offset leads to.
    pub(crate) fn target_offset(self, number: u16) -> Result<Option<usize>, Broken> {
        self.field_offset(number)?.map(|at| follow_offset(self.bytes, at)).transpose()
    }

    /// How many fields its vtable has room for.
    pub(crate) fn field_count(self) -> Result<u16, Broken> {
        let size = u16::from_le_bytes(read_array(self.bytes, self.vtable()?)?);
        Ok(size.saturating_sub(4) / 2)
    }

    fn vtable(self) -> Result<usize, Broken> {
        let back = i64::from(i32::from_le_bytes(read_array(self.bytes, self.at)?));
        let vtable = i64::try_from(self.at).ok().and_then(|at| at.checked_sub(back));
        let vtable = vtable.and_then(|at| usize::try_from(at).ok());
        vtable.ok_or_else(|| Broken::new(self.at, "a table without a vtable"))
    }

    pub(crate) fn u8(self, number: u16) -> Result<u8, Broken> {
        self.field_offset(number)?.map_or(Ok(0), |at| read_array::<1>(self.bytes, at).map(|[byte]| byte))
    }

    pub(crate) fn u32(self, number: u16) -> Result<u32, Broken> {
        self.field_offset(number)?.map_or(Ok(0), |at| u32_at(self.bytes, at))
    }

    pub(crate) fn u64(self, number: u16) -> Result<u64, Broken> {
        self.field_offset(number)?.map_or(Ok(0), |at| read_array(self.bytes, at).map(u64::from_le_bytes))
    }

    /// A table that a field leads to.
    pub(crate) fn read_table(self, number: u16) -> Result<Option<Self>, Broken> {
        Ok(self.target_offset(number)?.map(|at| Self { at, ..self }))
    }

    /// A vector of elements of `width` bytes; an empty one if the field is left out.
    pub(crate) fn read_vector(self, number: u16, width: usize) -> Result<Vector<'b>, Broken> {
        let Some(field) = self.field_offset(number)? else {
            return Ok(Vector { bytes: self.bytes, at: 0, len: 0 });
        };
        let start = follow_offset(self.bytes, field)?;
        let len = u32_at(self.bytes, start)? as usize;
        let room = (self.bytes.len() - start - 4) / width;
        if len > room {
            let reason = format!("a vector of {len} elements, but there is room for {room}");
            return Err(Broken::new(start, reason));
        }
        Ok(Vector { bytes: self.bytes, at: start + 4, len })
    }

    /// A string; empty where the field is left out.
    pub(crate) fn read_string(self, number: u16) -> Result<String, Broken> {
        Ok(String::from_utf8_lossy(self.read_vector(number, 1)?.bytes()).into_owned())
    }
}

impl<'b> Vector<'b> {
    pub(crate) const fn len(self) -> usize {
        self.len
    }

    /// Elements of `N` bytes.
    fn chunks<const N: usize>(self) -> &'b [[u8; N]] {
        self.bytes.get(self.at..self.at + N * self.len).unwrap_or_default().as_chunks().0
    }

    /// The elements of a vector of bytes.
    pub(crate) fn bytes(self) -> &'b [u8] {
        self.bytes.get(self.at..self.at + self.len).unwrap_or_default()
    }

    /// Elements of four bytes.
    pub(crate) fn ints(self) -> impl Iterator<Item = i32> + 'b {
        self.chunks::<4>().iter().map(|&chunk| i32::from_le_bytes(chunk))
    }

    /// Elements of eight bytes.
    pub(crate) fn longs(self) -> impl Iterator<Item = u64> + 'b {
        self.chunks::<8>().iter().map(|&chunk| u64::from_le_bytes(chunk))
    }

    /// An element that is an offset to a table.
    pub(crate) fn table_at(self, number: usize) -> Result<Table<'b>, Broken> {
        if number >= self.len {
            let reason = format!("there is no element {number} of {}", self.len);
            return Err(Broken::new(self.at, reason));
        }
        Ok(Table { bytes: self.bytes, at: follow_offset(self.bytes, self.at + 4 * number)? })
    }

    /// All of them.
    pub(crate) fn tables(self) -> impl Iterator<Item = Result<Table<'b>, Broken>> {
        (0..self.len).map(move |number| self.table_at(number))
    }
}

/// Flatbuffers for tests.
#[cfg(test)]
pub(crate) mod testing {
    /// A field of a flatbuffer: all are words here.
    pub(crate) enum Field {
        Number(u32),
        Ints(Vec<i32>),
        Text(&'static str),
        Table(Vec<Option<Field>>),
        Tables(Vec<Vec<Option<Field>>>),
    }

    fn word(bytes: &mut Vec<u8>, word: usize) -> usize {
        bytes.extend(u32::try_from(word).expect("small").to_le_bytes());
        bytes.len() - 4
    }

    /// Lets the word at a place lead to the end.
    pub(crate) fn lead(bytes: &mut [u8], at: usize) {
        let far = u32::try_from(bytes.len() - at).expect("small");
        bytes[at..at + 4].copy_from_slice(&far.to_le_bytes());
    }

    /// Appends a table with what its fields lead to; the word at `link` leads to it.
    pub(crate) fn write(bytes: &mut Vec<u8>, fields: &[Option<Field>], link: usize) {
        let vtable = bytes.len();
        let short = |number: usize| u16::try_from(number).expect("small").to_le_bytes();
        bytes.extend(short(4 + 2 * fields.len()));
        bytes.extend(short(4 + 4 * fields.len()));
        (0..fields.len())
            .for_each(|at| bytes.extend(short(if fields[at].is_some() { 4 + 4 * at } else { 0 })));
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        lead(bytes, link);
        let table = bytes.len();
        word(bytes, table - vtable);
        for field in fields {
            word(bytes, if let Some(Field::Number(number)) = field { *number as usize } else { 0 });
        }
        for (number, field) in fields.iter().enumerate() {
            let at = table + 4 + 4 * number;
            match field {
                None | Some(Field::Number(_)) => {}
                Some(Field::Table(fields)) => write(bytes, fields, at),
                Some(Field::Ints(ints)) => {
                    lead(bytes, at);
                    word(bytes, ints.len());
                    ints.iter().for_each(|int| bytes.extend(int.to_le_bytes()));
                }
                Some(Field::Text(text)) => {
                    lead(bytes, at);
                    word(bytes, text.len());
                    bytes.extend(text.as_bytes());
                    bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
                }
                Some(Field::Tables(tables)) => {
                    lead(bytes, at);
                    word(bytes, tables.len());
                    let links: Vec<usize> = tables.iter().map(|_| word(bytes, 0)).collect();
                    tables.iter().zip(links).for_each(|(table, link)| write(bytes, table, link));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root table with a vector of two ints in field 1: vtable at 4, table at 12, vector at 20.
    fn small() -> Vec<u8> {
        let mut bytes = vec![12, 0, 0, 0, 8, 0, 8, 0, 0, 0, 4, 0, 8, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0];
        bytes.extend([7, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        bytes
    }

    #[test]
    fn fields_are_found_by_number() {
        let bytes = small();
        let root = Table::root_table(&bytes).expect("a table");
        assert_eq!(root.read_vector(1, 4).expect("there").ints().collect::<Vec<_>>(), [7, -1]);
        assert_eq!(root.field_offset(0), Ok(None));
        assert_eq!(root.field_offset(9), Ok(None));
        assert_eq!(root.u32(0), Ok(0));
        assert_eq!(root.read_string(2).as_deref(), Ok(""));
    }

    #[test]
    fn nothing_outside_of_the_file_is_read() {
        let whole = small();
        for cut in 0..whole.len() {
            let bytes = &whole[..cut];
            let read = Table::root_table(bytes).and_then(|root| root.read_vector(1, 4));
            assert!(read.is_err_and(|broken| broken.at <= cut as u64), "cut at {cut}");
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7F, 0xFF] {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                let Ok(root) = Table::root_table(&bytes) else { continue };
                let _ = root.read_vector(1, 4).map(|vector| vector.ints().count());
                let _ = root.read_vector(1, 4).map(|vector| vector.tables().count());
            }
        }
        let mut long = whole;
        long[20] = 3;
        let root = Table::root_table(&long).expect("a table");
        let broken = root.read_vector(1, 4).err().expect("too long");
        assert_eq!(broken, Broken::new(20, "a vector of 3 elements, but there is room for 2"));
    }
}
