//! Names as a query has to write them.

use std::borrow::Cow;

/// The reserved words of ADQL 2.1 (section 2.1.2: its own, and those of SQL-92).
const RESERVED: &str = "\
    ABS ABSOLUTE ACOS ACTION ADD ALL ALLOCATE ALTER AND ANY ARE AREA AS ASC ASIN ASSERTION AT ATAN ATAN2 \
    AUTHORIZATION AVG BEGIN BETWEEN BIGINT BIT BIT_LENGTH BOTH BOX BY CASCADE CASCADED CASE CAST CATALOG \
    CEILING CENTROID CHAR CHARACTER CHARACTER_LENGTH CHAR_LENGTH CHECK CIRCLE CLOSE COALESCE COLLATE \
    COLLATION COLUMN COMMIT CONNECT CONNECTION CONSTRAINT CONSTRAINTS CONTAINS CONTINUE CONVERT COORD1 \
    COORD2 COORDSYS CORRESPONDING COS COT COUNT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME \
    CURRENT_TIMESTAMP CURRENT_USER CURSOR DATE DAY DEALLOCATE DECIMAL DECLARE DEFAULT DEFERRABLE DEFERRED \
    DEGREES DELETE DESC DESCRIBE DESCRIPTOR DIAGNOSTICS DISCONNECT DISTANCE DISTINCT DOMAIN DOUBLE DROP ELSE \
    END ESCAPE EXCEPT EXCEPTION EXEC EXECUTE EXISTS EXP EXTERNAL EXTRACT FALSE FETCH FIRST FLOAT FLOOR FOR \
    FOREIGN FOUND FROM FULL GET GLOBAL GO GOTO GRANT GROUP HAVING HOUR IDENTITY ILIKE IMMEDIATE IN INDICATOR \
    INITIALLY INNER INPUT INSENSITIVE INSERT INT INTEGER INTERSECT INTERSECTS INTERVAL INTO IN_UNIT IS \
    ISOLATION JOIN KEY LANGUAGE LAST LEADING LEFT LEVEL LIKE LOCAL LOG LOG10 LOWER MATCH MAX MIN MINUTE MOD \
    MODULE MONTH NAMES NATIONAL NATURAL NCHAR NEXT NO NOT NULL NULLIF NUMERIC OCTET_LENGTH OF OFFSET ON ONLY \
    OPEN OPTION OR ORDER OUTER OUTPUT OVERLAPS PAD PARTIAL PI POINT POLYGON POSITION POWER PRECISION PREPARE \
    PRESERVE PRIMARY PRIOR PRIVILEGES PROCEDURE PUBLIC RADIANS RAND READ REAL REFERENCES REGION RELATIVE \
    RESTRICT REVOKE RIGHT ROLLBACK ROUND ROWS SCHEMA SCROLL SECOND SECTION SELECT SESSION SESSION_USER SET \
    SIN SIZE SMALLINT SOME SPACE SQL SQLCODE SQLERROR SQLSTATE SQRT SUBSTRING SUM SYSTEM_USER TABLE TAN \
    TEMPORARY THEN TIME TIMESTAMP TIMEZONE_HOUR TIMEZONE_MINUTE TO TOP TRAILING TRANSACTION TRANSLATE \
    TRANSLATION TRIM TRUE TRUNCATE UNION UNIQUE UNKNOWN UPDATE UPPER USAGE USER USING VALUE VALUES VARCHAR \
    VARYING VIEW WHEN WHENEVER WHERE WITH WORK WRITE YEAR ZONE";

/// Whether a word cannot be a regular identifier in every service; case does not count.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.split(' ').any(|reserved| reserved.eq_ignore_ascii_case(word))
}

/// Whether a name can be written without quotes (ADQL 2.1 sections 2.1.2 and 2.1.6).
pub fn is_regular(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(plain)
        && !is_reserved(name)
}

/// The name as a query writes it: in quotes where it must be, which is how TAP_SCHEMA lists it (TAP 1.1 section 4).
pub fn identifier(name: &str) -> Cow<'_, str> {
    if is_regular(name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        for (name, written) in [
            ("ra", "ra"),
            ("e_RA", "e_RA"),
            ("size", "\"size\""),
            ("Value", "\"Value\""),
            ("_RAJ2000", "\"_RAJ2000\""),
            ("2mass", "\"2mass\""),
            ("I/311/hip2", "\"I/311/hip2\""),
            ("a\"b", "\"a\"\"b\""),
            ("", "\"\""),
        ] {
            assert_eq!(identifier(name), written);
        }
    }
}
