//! The switches for additions to a plain model.

/// Makes a table of switches, all on by default: those that every model has, then its own.
macro_rules! switches {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident, $with:ident;)* }) => {
        $crate::pairs::switches! { @table $(#[$about])* $name {
            /// Whether the height is held at or above the best bound known. Default: yes.
            load, with_load;
            /// Whether to leave out buffers that no chain of overlapping live ranges joins to one that ends above the
            /// best known bound. Default: yes.
            drop_settled, with_drop_settled;
            /// Whether to leave out buffers that find a place below the best known bound in every plan of the others:
            /// small ones with few neighbours. Default: yes.
            peel, with_peel;
            /// Whether parts that no live range joins get separate models. Default: yes.
            split, with_split;
            /// Whether identical buffers lie in the order of their ids, and one of each plan and its mirror image is
            /// left out. Default: yes.
            symmetry, with_symmetry;
            /// Whether the search begins at the best known plan. Default: yes.
            start, with_start;
            $($(#[$doc])* $field, $with;)*
        } }
    };
    (@table $(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident, $with:ident;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $(pub(super) $field: bool,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self::all(true)
            }
        }

        impl $name {
            /// Everything on, or everything off: the plain model, as published.
            #[must_use]
            pub const fn all(on: bool) -> Self {
                Self { $($field: on,)* }
            }

            $(
                $(#[$doc])*
                #[must_use]
                pub const fn $with(mut self, on: bool) -> Self {
                    self.$field = on;
                    self
                }
            )*
        }
    };
}

pub(crate) use switches;
