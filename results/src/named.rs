//! Closed sets of values with names.

/// Declares an enumeration in which each variant states its name in files and on screen.
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $kind:ident { $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        pub enum $kind {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $kind {
            /// All variants, in the order of reports.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name in files and on screen.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}
pub(crate) use named_enum;
