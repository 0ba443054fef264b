"""What a test run came to: result.json, junit.xml and one HTML page, with the raw logs of what failed."""
