"""What a read means and how it is run, as trees and rows, without running it (languages.md 18)."""
