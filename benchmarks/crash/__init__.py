"""Crashes, failing disks, damaged and hostile files, and many processes at once: `make crash`."""
