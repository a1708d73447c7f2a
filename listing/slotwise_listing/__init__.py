"""How is it sold? The bundle and the copy of its listing."""
