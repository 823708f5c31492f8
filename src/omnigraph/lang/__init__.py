"""The two languages: text in, typed trees and diagnostics out. No I/O, no Arrow, no engine."""
