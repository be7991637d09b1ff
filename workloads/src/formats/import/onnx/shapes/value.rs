//! What is known of a value before the net runs: its element type, its shape, and the numbers of small ones.

use crate::formats::import::onnx::messages::Tensor;

pub(crate) const FLOAT: i32 = 1;
pub(crate) const UINT8: i32 = 2;
pub(crate) const INT32: i32 = 6;
pub(crate) const INT64: i32 = 7;
pub(crate) const BOOL: i32 = 9;

/// Whole numbers of larger values are not followed: shapes, axes and bounds are short.
pub(crate) const FOLLOWED: usize = 1024;
/// More dimensions than NumPy has are a mistake.
pub(crate) const MOST_DIMENSIONS: usize = 64;

/// A value with a known shape.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    /// `TensorProto.DataType`.
    pub(crate) elem: i32,
    pub(crate) shape: Vec<u64>,
    /// Its numbers, if they are whole and known.
    pub(crate) ints: Option<Vec<i64>>,
    /// Its numbers, if the file says them and they are floats: the scales of a Resize.
    pub(crate) floats: Option<Vec<f32>>,
}

impl Value {
    pub(crate) fn new(elem: i32, shape: impl Into<Vec<u64>>) -> Self {
        Self { elem, shape: shape.into(), ints: None, floats: None }
    }

    /// A value of one dimension with these numbers.
    pub(crate) fn of_ints(ints: Vec<i64>) -> Self {
        Self::new(INT64, [ints.len() as u64]).with_ints(Some(ints))
    }

    /// The same with numbers, if they are few, and as many as the shape says.
    pub(crate) fn with_ints(mut self, ints: Option<Vec<i64>>) -> Self {
        self.ints = ints.filter(|ints| self.has_room_for(ints.len()));
        self
    }

    /// The same with floats.
    pub(crate) fn with_floats(mut self, floats: Option<Vec<f32>>) -> Self {
        self.floats = floats.filter(|floats| self.has_room_for(floats.len()));
        self
    }

    fn has_room_for(&self, count: usize) -> bool {
        Some(count as u64) == element_count(&self.shape) && count <= FOLLOWED
    }

    /// What a tensor of the file is.
    ///
    /// # Errors
    ///
    /// Where a dimension is negative, or there are too many.
    pub(crate) fn of_tensor(tensor: &Tensor) -> Result<Self, String> {
        few_dimensions(tensor.dims.len())?;
        let dims = tensor.dims.iter().map(|&dim| u64::try_from(dim));
        let shape = dims.collect::<Result<Vec<u64>, _>>().map_err(|_| "it has a negative dimension")?;
        let value = Self::new(tensor.data_type.unwrap_or(0), shape);
        let few = element_count(&value.shape).is_some_and(|count| count <= FOLLOWED as u64);
        let (ints, floats) = if few {
            (tensor_ints(tensor, value.elem), tensor_floats(tensor, value.elem))
        } else {
            (None, None)
        };
        Ok(value.with_ints(ints).with_floats(floats))
    }

    /// Bytes; an error where the element type has no size, or the product leaves 64 bits.
    pub(crate) fn byte_size(&self) -> Result<u64, String> {
        let bits =
            element_bits(self.elem).ok_or_else(|| format!("its element type, {}, has no size", self.elem))?;
        let total = element_count(&self.shape).and_then(|count| count.checked_mul(bits));
        total.map(|bits| bits.div_ceil(8)).ok_or_else(|| "its bytes do not fit 64 bits".to_owned())
    }

    /// How many dimensions it has.
    pub(crate) const fn rank(&self) -> usize {
        self.shape.len()
    }
}

/// Refuses a shape of more dimensions than any net has: each node that reads it would walk them all.
pub(crate) fn few_dimensions(count: usize) -> Result<(), String> {
    match count {
        ..=MOST_DIMENSIONS => Ok(()),
        _ => Err(format!("it has {count} dimensions, more than {MOST_DIMENSIONS}")),
    }
}

/// The product of a shape.
pub(crate) fn element_count(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))
}

/// Bits of an element, by `TensorProto.DataType` of ONNX 1.20; none of a string.
const fn element_bits(elem: i32) -> Option<u64> {
    Some(match elem {
        25 | 26 => 2,
        21..=23 => 4,
        2 | 3 | 9 | 17..=20 | 24 => 8,
        4 | 5 | 10 | 16 => 16,
        1 | 6 | 12 => 32,
        7 | 11 | 13 | 14 => 64,
        15 => 128,
        _ => return None,
    })
}

/// The whole numbers of a tensor whose data lie in the file.
fn tensor_ints(tensor: &Tensor, elem: i32) -> Option<Vec<i64>> {
    let raw = tensor.raw_data.as_deref().unwrap_or_default();
    match elem {
        INT64 if !tensor.int64_data.is_empty() => Some(tensor.int64_data.clone()),
        INT32 | BOOL if !tensor.int32_data.is_empty() => {
            Some(tensor.int32_data.iter().map(|&int| i64::from(int)).collect())
        }
        INT64 => Some(raw.as_chunks::<8>().0.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect()),
        INT32 => {
            Some(raw.as_chunks::<4>().0.iter().map(|&bytes| i64::from(i32::from_le_bytes(bytes))).collect())
        }
        BOOL => Some(raw.iter().map(|&byte| i64::from(byte)).collect()),
        _ => None,
    }
}

/// The floats of a tensor whose data lie in the file.
fn tensor_floats(tensor: &Tensor, elem: i32) -> Option<Vec<f32>> {
    let raw = tensor.raw_data.as_deref().unwrap_or_default();
    match elem {
        FLOAT if !tensor.float_data.is_empty() => Some(tensor.float_data.clone()),
        FLOAT => Some(raw.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_follow_the_element_type() {
        let cases = [(FLOAT, 12, 48), (10, 12, 24), (BOOL, 12, 12), (22, 5, 3), (15, 2, 32), (INT64, 0, 0)];
        for (elem, count, bytes) in cases {
            assert_eq!(Value::new(elem, [count]).byte_size(), Ok(bytes), "{elem}");
        }
        assert_eq!(Value::new(FLOAT, []).byte_size(), Ok(4));
        assert!(Value::new(8, [1]).byte_size().is_err());
        assert!(Value::new(FLOAT, [1 << 40, 1 << 40]).byte_size().is_err());
    }

    #[test]
    fn small_tensors_keep_their_numbers() {
        let raw: Vec<u8> = [-1_i64, 7].iter().flat_map(|int| int.to_le_bytes()).collect();
        let tensor =
            Tensor { dims: vec![2], data_type: Some(INT64), raw_data: Some(raw.into()), ..Tensor::default() };
        assert_eq!(Value::of_tensor(&tensor).expect("valid").ints, Some(vec![-1, 7]));
        let cut = Tensor { dims: vec![3], ..tensor.clone() };
        assert_eq!(Value::of_tensor(&cut).expect("valid").ints, None);
        assert!(Value::of_tensor(&Tensor { dims: vec![-3], ..tensor }).is_err());
        let raw: Vec<u8> = [1.0_f32, 2.5].iter().flat_map(|float| float.to_le_bytes()).collect();
        let floats = Tensor { dims: vec![2], data_type: Some(FLOAT), ..Tensor::default() };
        for tensor in [
            Tensor { raw_data: Some(raw.into()), ..floats.clone() },
            Tensor { float_data: vec![1.0, 2.5], ..floats },
        ] {
            assert_eq!(Value::of_tensor(&tensor).expect("valid").floats, Some(vec![1.0, 2.5]));
        }
    }
}
