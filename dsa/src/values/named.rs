//! Enums whose values have names in files and on screen.

/// Defines an enum with a name for each value: in `ALL`, `name()`, `Display` and serde alike.
///
/// ```
/// planlab_dsa::named_enum! {
///     /// The colour of a light.
///     #[derive(PartialOrd, Ord)]
///     pub enum Light {
///         /// Stop.
///         Red = "red",
///         /// Stop if you can.
///         RedAndYellow = "red-and-yellow",
///     }
/// }
/// assert_eq!(Light::RedAndYellow.to_string(), "red-and-yellow");
/// assert_eq!(Light::ALL.map(Light::name), ["red", "red-and-yellow"]);
/// ```
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $type:ident {
            $($(#[$of_value:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
        $visibility enum $type {
            $($(#[$of_value])* #[serde(rename = $name)] $value,)+
        }

        impl $type {
            /// Every value.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// The name in files and on screen.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
