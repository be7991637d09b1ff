//! `show` and `report`.
