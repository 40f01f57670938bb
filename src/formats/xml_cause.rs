//! Messages for errors in XML, worded like the other messages of this program.

use quick_xml::Error;
use quick_xml::errors::{IllFormedError, SyntaxError};
use quick_xml::escape::EscapeError;
use quick_xml::events::attributes::AttrError;

/// Returns the cause of an error of the parser.
pub(super) fn markup_error_message(error: &Error) -> String {
    match error {
        Error::Io(error) => error.to_string(),
        Error::Syntax(error) => format!("the text ends within {}", unfinished_markup(*error)),
        Error::IllFormed(error) => ill_formed_error_message(error),
        Error::InvalidAttr(error) => attribute_error_message(error),
        Error::Encoding(_) => "the text is not UTF-8".into(),
        Error::Escape(error) => reference_error_message(error),
        Error::Namespace(_) => "the prefix of a name is not known".into(),
    }
}

/// Returns the kind of markup within which the text ends.
const fn unfinished_markup(error: SyntaxError) -> &'static str {
    match error {
        SyntaxError::InvalidBangMarkup => "markup that begins with <!",
        SyntaxError::UnclosedPI => "markup that begins with <?",
        SyntaxError::UnclosedXmlDecl => "the XML declaration",
        SyntaxError::UnclosedComment => "a comment",
        SyntaxError::UnclosedDoctype => "the document type",
        SyntaxError::UnclosedCData => "a CDATA section",
        SyntaxError::UnclosedTag => "a tag",
        SyntaxError::UnclosedSingleQuotedAttributeValue
        | SyntaxError::UnclosedDoubleQuotedAttributeValue => "the value of an attribute",
    }
}

fn ill_formed_error_message(error: &IllFormedError) -> String {
    match error {
        IllFormedError::MissingDeclVersion(_) => {
            "the XML declaration does not begin with a version".into()
        }
        IllFormedError::UnknownVersion => "the version of XML is neither 1.0 nor 1.1".into(),
        IllFormedError::MissingDoctypeName => "a document type without a name".into(),
        IllFormedError::MissingEndTag(name) => format!("the text ends before </{name}>"),
        IllFormedError::UnmatchedEndTag(name) => format!("there is no <{name}> before </{name}>"),
        IllFormedError::MismatchedEndTag { expected, found } => {
            format!("expected </{expected}>, not </{found}>")
        }
        IllFormedError::DoubleHyphenInComment => "there is -- in a comment".into(),
        IllFormedError::UnclosedReference => "there is & without ;".into(),
    }
}

/// Returns the cause of an error in the attributes of an element.
pub(super) fn attribute_error_message(error: &AttrError) -> String {
    match error {
        AttrError::ExpectedEq(_) => "an attribute without =",
        AttrError::ExpectedValue(_) => "an attribute without a value",
        AttrError::UnquotedValue(_) => "the value of an attribute without quotes",
        AttrError::ExpectedQuote(..) => "the value of an attribute without its last quote",
        AttrError::Duplicated(..) => "a duplicated attribute",
    }
    .into()
}

/// Returns the cause of an error in a reference to an entity or a character.
pub(super) fn reference_error_message(error: &EscapeError) -> String {
    match error {
        EscapeError::UnrecognizedEntity(_, name) => format!("&{name}; is not known"),
        EscapeError::UnterminatedEntity(_) => "there is & without ;".into(),
        EscapeError::InvalidCharRef(_) => "a reference to a character that does not exist".into(),
        EscapeError::TooManyNestedEntities => "too many references to entities".into(),
    }
}
